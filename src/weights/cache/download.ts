import { WeightsError } from '../../errors.ts'
import { ChangedError, type Remote, type RemoteFile } from '../remote.ts'
import { sha256 } from '../sha256.ts'
import { type DownloadProgress, meter } from './progress.ts'
import { readJson, type Store, type Stored, writeJson } from './store.ts'

/**
 * A file in the cache is a folder: pieces named 0, 1, ... of `pieceBytes` each (the last one is shorter), and a record.
 * Each piece is written whole or not at all, so a download goes on behind those that are there; a page can do that too,
 * where a file that is still open keeps nothing when the page is closed.
 */
export interface FileRecord extends RemoteFile {
  readonly source: string
  readonly path: string
  readonly pieceBytes: number
  /** Times at which the pieces were last changed. There when all have come and the hash was right. */
  readonly modified?: readonly number[]
}

export interface Download {
  readonly store: Store
  /** Of the file, in the store. */
  readonly folder: string
  readonly remote: Remote
  readonly path: string
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((progress: DownloadProgress) => void) | undefined
}

const PIECE_BYTES = 16 * 2 ** 20
/** Hashed at once: a few milliseconds, in which a page does nothing else. */
const HASHED_BYTES = 2 ** 20
const recordOf = (folder: string): string => `${folder}/record.json`
const pieceOf = (folder: string, index: number): string => `${folder}/${index}`

async function readRecord(store: Store, folder: string): Promise<FileRecord | undefined> {
  const json = (await readJson(store, recordOf(folder))) as Partial<FileRecord> | undefined
  const known = Number.isSafeInteger(json?.bytes) && json?.pieceBytes === PIECE_BYTES
  return known ? (json as FileRecord) : undefined
}

/** The record of a file that is there as it was when its hash was checked: same pieces, same lengths, never changed. */
export async function wholeRecord(store: Store, folder: string): Promise<FileRecord | undefined> {
  const record = await readRecord(store, folder)
  if (!record?.modified) return undefined
  const pieces = await goodPieces(store, folder, record)
  return pieces.size === pieceCount(record.bytes) ? record : undefined
}

/** Bytes that an earlier download of this file has left. */
export async function presentBytes(store: Store, folder: string, wanted: RemoteFile): Promise<number> {
  const record = await readRecord(store, folder)
  if (!record || !isSame(record, wanted)) return 0
  return [...(await goodPieces(store, folder, record)).keys()].reduce((sum, i) => sum + pieceLength(record.bytes, i), 0)
}

/** Keeps in mind that a source has no such file, for when it cannot be asked. */
export async function noteAbsent(store: Store, folder: string, source: string, path: string): Promise<void> {
  if (await isAbsent(store, folder)) return
  await store.locked(folder, async () => {
    await store.remove(folder)
    await writeJson(store, recordOf(folder), { source, path, absent: true })
  })
}

export const isAbsent = async (store: Store, folder: string): Promise<boolean> =>
  ((await readJson(store, recordOf(folder))) as { absent?: boolean } | undefined)?.absent === true

/** Bytes [start, end) of a file that is whole. */
export async function readPieces(store: Store, folder: string, start: number, end: number, signal?: AbortSignal) {
  const read = (index: number, from: number, to: number) =>
    store.read(pieceOf(folder, index), from - index * PIECE_BYTES, to - index * PIECE_BYTES, signal)
  const first = Math.floor(start / PIECE_BYTES)
  if (end <= (first + 1) * PIECE_BYTES) return start === end ? new Uint8Array(0) : read(first, start, end)
  const bytes = new Uint8Array(end - start)
  for (let at = start; at < end; ) {
    const index = Math.floor(at / PIECE_BYTES)
    const to = Math.min(end, (index + 1) * PIECE_BYTES)
    bytes.set(await read(index, at, to), at - start)
    at = to
  }
  return bytes
}

/**
 * Brings a file into the store and checks it: one that is there is left, one that is there in part is completed, one
 * that was changed is mended. A wrong hash or a change on the server begins anew, once. Others who want the same file
 * wait for it.
 */
export async function download(wanted: RemoteFile, task: Download): Promise<FileRecord> {
  const { store, folder, remote, path } = task
  return store.locked(
    folder,
    async (signal) => {
      const found = await wholeRecord(store, folder)
      if (found && isSame(found, wanted)) return found
      try {
        return await attempt(wanted, { ...task, signal })
      } catch (error) {
        if (!(error instanceof ChangedError)) throw error
        await store.remove(folder)
        const now = await remote.stat(path, signal)
        if (!now) throw new WeightsError('missing', `${remote.name}: has no ${path} any more`, { cause: error })
        return attempt(now, { ...task, signal })
      }
    },
    task.signal,
  )
}

async function attempt(wanted: RemoteFile, task: Download): Promise<FileRecord> {
  const { store, folder, remote, path, signal, onProgress } = task
  const left = await readRecord(store, folder)
  const before = left && isSame(left, wanted) ? left : undefined
  if (!before) await store.remove(folder)
  const bytes = wanted.bytes
  const [etag, sha] = [wanted.etag ?? before?.etag, wanted.sha256 ?? before?.sha256]
  const record: FileRecord = { source: remote.name, path, bytes, etag, sha256: sha, pieceBytes: PIECE_BYTES }
  const there = await goodPieces(store, folder, before ?? record)
  await writeJson(store, recordOf(folder), record)

  const hash = await sha256()
  const progress = meter(remote.name, path, bytes, onProgress)
  const buffer = new Uint8Array(Math.min(PIECE_BYTES, bytes))
  for (let index = 0; index < pieceCount(bytes); ) {
    if (there.has(index)) {
      const length = pieceLength(bytes, index)
      for (let at = 0; at < length; at += HASHED_BYTES) {
        const some = await store.read(pieceOf(folder, index), at, Math.min(length, at + HASHED_BYTES), signal)
        hash.update(some)
        progress.add(some.length, 'store')
      }
      index++
      continue
    }
    let until = index // pieces that are missing in a row come in one transfer
    while (until < pieceCount(bytes) && !there.has(until)) until++
    let filled = 0
    const [start, end] = [index * PIECE_BYTES, Math.min(bytes, until * PIECE_BYTES)]
    for await (const part of remote.transfer(path, start, end, { signal, etag, inOrder: true })) {
      progress.add(part.length, 'network')
      for (let taken = 0; taken < part.length; ) {
        const some = part.subarray(taken, taken + pieceLength(bytes, index) - filled)
        hash.update(some)
        buffer.set(some, filled)
        filled += some.length
        taken += some.length
        if (filled < pieceLength(bytes, index)) continue
        await store.write(pieceOf(folder, index++), buffer.subarray(0, filled))
        signal?.throwIfAborted()
        filled = 0
      }
    }
  }
  const digest = hash.digest()
  if (sha !== undefined && sha !== digest)
    throw new ChangedError(
      'format',
      `${remote.name}/${path}: has sha256 ${digest}, expected ${sha}; it was damaged on its way, load it again`,
    )
  const stored = byIndex(await store.list(folder))
  const modified = Array.from({ length: pieceCount(bytes) }, (_, i) => stored.get(i)?.modified ?? 0)
  const whole = { ...record, sha256: digest, modified }
  await writeJson(store, recordOf(folder), whole)
  return whole
}

const pieceCount = (bytes: number): number => Math.ceil(bytes / PIECE_BYTES)
const pieceLength = (bytes: number, index: number): number => Math.min(PIECE_BYTES, bytes - index * PIECE_BYTES)

/** Pieces of the right length that nobody has changed since they were checked. */
async function goodPieces(store: Store, folder: string, record: FileRecord): Promise<Map<number, Stored>> {
  const pieces = byIndex(await store.list(folder))
  for (const [index, { bytes, modified }] of pieces) {
    const checked = record.modified?.[index]
    const changed = checked !== undefined && checked !== modified
    if (changed || index >= pieceCount(record.bytes) || bytes !== pieceLength(record.bytes, index)) pieces.delete(index)
  }
  return pieces
}

const byIndex = (files: readonly Stored[]): Map<number, Stored> =>
  new Map(
    files.flatMap((file): [number, Stored][] => {
      const name = file.path.slice(file.path.lastIndexOf('/') + 1)
      return /^\d+$/.test(name) ? [[Number(name), file]] : []
    }),
  )

/** What is not known of one of them says nothing. */
export const isSame = (a: RemoteFile, b: RemoteFile): boolean =>
  a.bytes === b.bytes &&
  (a.etag === undefined || b.etag === undefined || a.etag === b.etag) &&
  (a.sha256 === undefined || b.sha256 === undefined || a.sha256 === b.sha256)
