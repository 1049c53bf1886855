import { WeightsError } from '../../errors.ts'
import { full, type Store, type Stored } from './store.ts'

const NAME = 'the storage of this site'

/** A store in the origin private file system of a page or a worker, below `folder`. */
export async function opfsStore(folder: string): Promise<Store> {
  if (!navigator.storage?.getDirectory || !navigator.locks)
    throw new WeightsError(
      'unsupported',
      'cache: this page has no private file system (it needs https or localhost); load without a cache',
    )
  const root = await (await navigator.storage.getDirectory()).getDirectoryHandle(folder, { create: true })
  const opened = new Map<string, File>() // finding one takes longer than reading a row out of it

  async function folderOf(path: string, create = false): Promise<FileSystemDirectoryHandle> {
    let at = root
    for (const name of path.split('/').filter(Boolean)) at = await at.getDirectoryHandle(name, { create })
    return at
  }
  const split = (path: string): [string, string] => {
    const at = path.lastIndexOf('/')
    return [path.slice(0, Math.max(at, 0)), path.slice(at + 1)]
  }
  const fileOf = async (path: string): Promise<File> => {
    const [above, name] = split(path)
    return (await (await folderOf(above)).getFileHandle(name)).getFile()
  }
  const describe = (path: string, { size, lastModified }: File): Stored => ({
    path,
    bytes: size,
    modified: lastModified,
  })

  async function list(below: string): Promise<Stored[]> {
    const found: Stored[] = []
    const visit = async (handle: FileSystemDirectoryHandle, path: string): Promise<void> => {
      for await (const [name, entry] of handle.entries()) {
        const at = path ? `${path}/${name}` : name
        if (entry.kind === 'directory') await visit(entry as FileSystemDirectoryHandle, at)
        else if (!name.endsWith('.crswap')) found.push(describe(at, await (entry as FileSystemFileHandle).getFile()))
      }
    }
    const top = await folderOf(below).catch(ifGone)
    if (top) await visit(top, below)
    return found
  }

  /** A File that was opened before another tab replaced it cannot be read: opened anew once. */
  async function read(path: string, start: number, end: number, signal?: AbortSignal): Promise<Uint8Array> {
    signal?.throwIfAborted()
    for (const remembered of [opened.get(path), undefined]) {
      const file = remembered ?? (await fileOf(path).catch(ifGone))
      if (!file) throw new WeightsError('missing', `${NAME}: has no ${path}; load it again`)
      opened.set(path, file)
      const buffer = await file
        .slice(start, end)
        .arrayBuffer()
        .catch(() => opened.delete(path))
      signal?.throwIfAborted()
      if (typeof buffer === 'object' && buffer.byteLength === end - start) return new Uint8Array(buffer)
    }
    throw new WeightsError('missing', `${NAME}: ${path} cannot be read up to byte ${end}; load it again`)
  }

  async function write(path: string, bytes: Uint8Array): Promise<void> {
    opened.delete(path)
    try {
      const [above, name] = split(path)
      const file = await (await folderOf(above, true)).getFileHandle(name, { create: true })
      await put(file, bytes as Uint8Array<ArrayBuffer>)
    } catch (cause) {
      if ((cause as Error).name === 'QuotaExceededError') throw full(NAME, cause)
      throw new WeightsError('missing', `${NAME}: ${path} cannot be written: ${(cause as Error).message}`, { cause })
    }
  }

  async function remove(path: string): Promise<void> {
    for (const known of opened.keys()) if (known === path || known.startsWith(`${path}/`)) opened.delete(known)
    const [above, name] = split(path)
    const handle = await folderOf(above).catch(ifGone)
    if (name === '')
      for await (const entry of handle?.keys() ?? []) await handle!.removeEntry(entry, { recursive: true })
    else await handle?.removeEntry(name, { recursive: true }).catch(ifGone)
  }

  return {
    name: NAME,
    list,
    stat: async (path) => {
      const file = await fileOf(path).catch(ifGone)
      return file && describe(path, file)
    },
    read,
    write,
    remove,
    async room() {
      const { quota, usage } = await navigator.storage.estimate()
      return quota === undefined || usage === undefined ? undefined : quota - usage
    },
    locked: (name, work, signal) =>
      navigator.locks.request(`pronounce/${folder}/${name}`, signal ? { signal } : {}, () => work(signal)) as never,
  }
}

/** What workers have in every browser, and TypeScript among the types of workers alone. */
interface WorkerFile {
  createSyncAccessHandle(): Promise<{
    truncate(bytes: number): void
    write(bytes: Uint8Array<ArrayBuffer>): number
    flush(): void
    close(): void
  }>
}

/** Writes into a swap file, which takes the file's place when it is closed; where there is none, into the file. */
async function put(file: FileSystemFileHandle, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
  if (!('createWritable' in file)) {
    const handle = await (file as WorkerFile).createSyncAccessHandle()
    try {
      handle.truncate(0) // a piece that is shorter than it should be is no piece
      if (handle.write(bytes) < bytes.length) throw new DOMException('it is full', 'QuotaExceededError')
      handle.flush()
    } finally {
      handle.close()
    }
    return
  }
  const stream = await file.createWritable()
  try {
    await stream.write(bytes)
    await stream.close()
  } catch (cause) {
    await stream.abort().catch(() => {})
    throw cause
  }
}

const ifGone = (error: DOMException): undefined => {
  if (error.name !== 'NotFoundError' && error.name !== 'TypeMismatchError') throw error
}
