import { WeightsError } from '../errors.ts'
import type { Source } from './source.ts'

/** Files of a folder on disk, in Node and Deno. A file is open only while it is read. */
export function folderSource(where: string | URL): Source {
  const name = String(where)

  async function pathOf(path: string): Promise<string> {
    const { join } = await import('node:path')
    const { fileURLToPath } = await import('node:url')
    return join(name.startsWith('file:') ? fileURLToPath(name) : name, path)
  }

  async function size(path: string, signal?: AbortSignal): Promise<number | undefined> {
    const { stat } = await import('node:fs/promises')
    signal?.throwIfAborted()
    const found = await stat(await pathOf(path)).catch(ifMissing(`${name}/${path}`))
    signal?.throwIfAborted()
    if (found?.isFile()) return found.size
    const folder = await stat(await pathOf('.')).catch(ifMissing(name))
    if (!folder?.isDirectory()) {
      const what = folder ? 'is not a folder' : 'there is no such folder'
      throw new WeightsError('missing', `${name}: ${what}; expected the folder of a checkpoint`)
    }
    return undefined
  }

  async function read(path: string, start: number, end: number, signal?: AbortSignal): Promise<Uint8Array> {
    const { open } = await import('node:fs/promises')
    signal?.throwIfAborted()
    const file = await open(await pathOf(path)).catch(ifMissing(`${name}/${path}`))
    if (!file) throw new WeightsError('missing', `${name}: has no ${path}; add the file`)
    try {
      const bytes = new Uint8Array(end - start)
      let got = 0
      while (got < bytes.length) {
        const { bytesRead } = await file.read(bytes, got, bytes.length - got, start + got)
        if (bytesRead === 0) {
          throw new WeightsError(
            'missing',
            `${name}/${path}: ends at byte ${start + got}, expected ${end}; copy it again`,
          )
        }
        got += bytesRead
        signal?.throwIfAborted()
      }
      return bytes
    } finally {
      await file.close()
    }
  }

  return { name, remote: false, size, read }
}

/** Undefined for what is not there; any other refusal of the file system (rights, a broken disk) is an error. */
const ifMissing = (where: string) => (cause: NodeJS.ErrnoException) => {
  if (cause.code === 'ENOENT' || cause.code === 'ENOTDIR') return undefined
  throw new WeightsError('missing', `${where}: cannot be read (${cause.code ?? cause.message})`, { cause })
}
