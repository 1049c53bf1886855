import { cacheFolder } from '../../device/place.ts'
import { WeightsError } from '../../errors.ts'
import { sleep } from '../http.ts'
import { folderSource } from '../source_folder.ts'
import { full, type Store, type Stored } from './store.ts'

/** How long a lock is believed whose process no longer says that it lives. */
const staleMs = 10_000
const askAgainMs = 200

/** A store in a folder, in Node and Deno. Default: models in the cache folder of this package. */
export async function folderStore(where: string | undefined): Promise<Store> {
  const { mkdir, readdir, rename, rm, stat, statfs, writeFile } = await import('node:fs/promises')
  const { dirname, join, resolve } = await import('node:path')
  const root = resolve(where ?? join(await cacheFolder(), 'models'))
  const { lock } = await lockfile()

  const describe = async (path: string): Promise<Stored | undefined> => {
    const found = await stat(join(root, path)).catch(ifGone)
    return found?.isFile() ? { path, bytes: found.size, modified: found.mtimeMs } : undefined
  }

  async function list(folder: string): Promise<Stored[]> {
    const entries = (await readdir(join(root, folder), { recursive: true, withFileTypes: true }).catch(ifGone)) ?? []
    const files = entries
      .filter((entry) => entry.isFile() && !isAside(entry.name))
      .map((entry) =>
        join(entry.parentPath, entry.name)
          .slice(root.length + 1)
          .replaceAll('\\', '/'),
      )
    return (await Promise.all(files.map(describe))).filter((file) => file !== undefined)
  }

  async function write(path: string, bytes: Uint8Array): Promise<void> {
    const file = join(root, path)
    const aside = `${file}.part` // writers of a file hold its lock
    try {
      await mkdir(dirname(file), { recursive: true })
      await writeFile(aside, bytes, { flush: true })
      await rename(aside, file)
    } catch (cause) {
      await rm(aside, { force: true })
      const { code, message } = cause as NodeJS.ErrnoException
      if (code === 'ENOSPC' || code === 'EDQUOT') throw full(root, cause)
      throw new WeightsError('missing', `${file}: cannot be written (${message}); set PRONOUNCE_CACHE`, { cause })
    }
  }

  async function room(): Promise<number | undefined> {
    for (let folder = root; ; folder = dirname(folder)) {
      const system = await statfs(folder).catch(ifGone)
      if (system) return system.bavail * system.bsize
      if (folder === dirname(folder)) return undefined
    }
  }

  async function locked<A>(
    name: string,
    work: (signal: AbortSignal | undefined) => Promise<A>,
    signal?: AbortSignal,
  ): Promise<A> {
    const lockfilePath = join(root, `${name}.lock`)
    await mkdir(dirname(lockfilePath), { recursive: true })
    const lost = new AbortController()
    const onCompromised = (cause: Error): void =>
      lost.abort(new WeightsError('missing', `${lockfilePath}: the lock was lost; load it again`, { cause }))
    for (;;) {
      signal?.throwIfAborted()
      const options = { lockfilePath, realpath: false, stale: staleMs, onCompromised }
      const release = await lock(lockfilePath, options).catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ELOCKED') return undefined
        throw error
      })
      if (!release) {
        await sleep(askAgainMs, signal)
        continue
      }
      try {
        return await work(signal ? AbortSignal.any([signal, lost.signal]) : lost.signal)
      } finally {
        await release().catch(() => {}) // it was lost, and somebody else's
      }
    }
  }

  return {
    name: root,
    list,
    stat: describe,
    read: folderSource(root).read,
    write,
    remove: (path) => rm(join(root, path), { recursive: true, force: true }),
    room,
    locked,
  }
}

/** What a process that died was just writing. */
const isAside = (name: string): boolean => name.endsWith('.part')

const ifGone = (error: NodeJS.ErrnoException): undefined => {
  if (error.code !== 'ENOENT' && error.code !== 'ENOTDIR') throw error
}

/** Not seen by bundlers, which have no use for it in a page. */
function lockfile(): Promise<typeof import('proper-lockfile')> {
  const name = 'proper-lockfile'
  return import(/* @vite-ignore */ name).then((module) => module.default ?? module)
}
