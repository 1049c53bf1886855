import { WeightsError } from '../../errors.ts'
import type { Remote, RemoteFile } from '../remote.ts'
import type { Source } from '../source.ts'
import { byteSize } from '../sizes.ts'
import { httpSource } from '../source_http.ts'
import {
  download,
  type FileRecord,
  isAbsent,
  isSame,
  noteAbsent,
  presentBytes,
  readPieces,
  wholeRecord,
} from './download.ts'
import type { DownloadProgress } from './progress.ts'
import { part, type Store } from './store.ts'

/** Where the files of a source are, and where they are kept. */
export interface Home {
  readonly store: Store
  /** Of the source, in the store. */
  readonly folder: string
  readonly remote: Remote
  /** All files are known, and never change: the server is asked for bytes alone. */
  readonly pinned: boolean
}

export interface CachedOptions {
  /** Nothing is asked of the network; what is not in the cache is an error. */
  readonly offline?: boolean | undefined
  readonly onProgress?: ((progress: DownloadProgress) => void) | undefined
}

/** Files up to this size come whole when they are first read; of larger ones ranges are read until `prepare`. */
const wholeBytes = 64 * 2 ** 20
/** Left free for others. */
const spareBytes = 64 * 2 ** 20

/** A remote source behind a cache: files come into it whole and are checked, and are read from there. */
export function cachedSource(
  name: string,
  findHome: (signal: AbortSignal | undefined) => Promise<Home>,
  { offline = false, onProgress }: CachedOptions,
): Source {
  let home: Home | undefined
  const facts = new Map<string, RemoteFile | undefined>() // asked once for each source
  const whole = new Map<string, FileRecord>()

  const homeOf = async (signal: AbortSignal | undefined): Promise<Home> => (home ??= await findHome(signal))
  const folderOf = ({ folder }: Home, path: string): string => `${folder}/${path.split('/').map(part).join('/')}`
  const notCached = (path: string): WeightsError =>
    new WeightsError('missing', `${name}: has no ${path} in the cache; load it once without offline`)

  /** What is known of a file; undefined where there is none. A server that fails is done without, if possible. */
  async function factOf(at: Home, path: string, signal: AbortSignal | undefined): Promise<RemoteFile | undefined> {
    if (facts.has(path)) return facts.get(path)
    const fact = at.pinned ? await at.remote.stat(path, signal) : await ask()
    facts.set(path, fact)
    return fact

    async function ask(): Promise<RemoteFile | undefined> {
      const folder = folderOf(at, path)
      const kept = async (error: unknown): Promise<RemoteFile | undefined> => {
        const record = await wholeRecord(at.store, folder)
        if (record || (await isAbsent(at.store, folder))) return record
        throw error
      }
      if (offline) return kept(notCached(path))
      try {
        const found = await at.remote.stat(path, signal)
        if (!found) await noteAbsent(at.store, folder, at.remote.name, path)
        return found
      } catch (error) {
        signal?.throwIfAborted()
        return kept(error)
      }
    }
  }

  async function isWhole(at: Home, path: string, fact: RemoteFile): Promise<boolean> {
    if (whole.has(path)) return true
    const record = await wholeRecord(at.store, folderOf(at, path))
    if (!record || !isSame(record, fact)) return false
    whole.set(path, record)
    return true
  }

  async function bring(at: Home, paths: readonly string[], signal: AbortSignal | undefined): Promise<void> {
    if (paths.length === 0) return
    if (offline) throw notCached(paths[0]!)
    let missing = 0
    for (const path of paths)
      missing += facts.get(path)!.bytes - (await presentBytes(at.store, folderOf(at, path), facts.get(path)!))
    const room = await at.store.room()
    if (room !== undefined && missing > 0 && room < missing + spareBytes)
      throw new WeightsError(
        'space',
        `${name}: needs ${byteSize(missing)} more in the cache, ${at.store.name} has ${byteSize(room)} left; ` +
          'remove models from the cache, or load without it',
      )
    for (const path of paths) {
      const task = { store: at.store, folder: folderOf(at, path), remote: at.remote, path, signal, onProgress }
      const record = await download(facts.get(path)!, task)
      facts.set(path, record) // it may have changed meanwhile
      whole.set(path, record)
    }
  }

  async function read(path: string, start: number, end: number, signal?: AbortSignal): Promise<Uint8Array> {
    signal?.throwIfAborted()
    const at = await homeOf(signal)
    const fact = await factOf(at, path, signal)
    if (!fact) throw new WeightsError('missing', `${name}: has no ${path}; add the file`)
    if (!(await isWhole(at, path, fact))) {
      if (!offline && fact.bytes > wholeBytes) {
        try {
          return await httpSource(at.remote).read(path, start, end, signal)
        } catch (error) {
          if (!(error instanceof WeightsError && error.code === 'unsupported')) throw error // it takes no ranges
        }
      }
      await bring(at, [path], signal)
    }
    const { bytes } = facts.get(path)!
    if (end > bytes)
      throw new WeightsError('missing', `${name}/${path}: ends at ${bytes}, before byte ${end}; the file is incomplete`)
    const readWhole = (): Promise<Uint8Array> => readPieces(at.store, folderOf(at, path), start, end, signal)
    return readWhole().catch(async (error) => {
      signal?.throwIfAborted()
      if (offline) throw error
      whole.delete(path) // somebody has removed it
      await bring(at, [path], signal)
      return readWhole()
    })
  }

  return {
    name,
    remote: false,
    async size(path, signal) {
      signal?.throwIfAborted()
      return (await factOf(await homeOf(signal), path, signal))?.bytes
    },
    read,
    async prepare(paths, signal) {
      const at = await homeOf(signal)
      const absent: string[] = []
      for (const path of paths) {
        const fact = await factOf(at, path, signal)
        if (!fact) throw new WeightsError('missing', `${name}: has no ${path}; add the file`)
        if (!(await isWhole(at, path, fact))) absent.push(path)
      }
      await bring(at, absent, signal)
    },
  }
}
