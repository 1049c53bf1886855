import { WeightsError } from '../errors.ts'
import type { Files, Source } from './source.ts'

/**
 * Files that a page holds: Blobs by path, or the Files of a folder that was dropped or picked. Those carry the folder's
 * own name as the first part of webkitRelativePath, which is cut off.
 */
export function blobSource(files: Files | readonly File[]): Source {
  const list: readonly (readonly [string, Blob])[] = Array.isArray(files)
    ? (files as readonly File[]).map((f) => [f.webkitRelativePath?.replace(/^[^/]*\//, '') || f.name, f])
    : Object.entries(files as Files)
  const blobs = new Map(list)
  const name = `${blobs.size} files`

  async function read(path: string, start: number, end: number, signal?: AbortSignal): Promise<Uint8Array> {
    signal?.throwIfAborted()
    const blob = blobs.get(path)
    if (!blob) throw new WeightsError('missing', `${name}: have no ${path}; add the file`)
    if (end > blob.size) {
      throw new WeightsError('missing', `${path}: ends at byte ${blob.size}, expected ${end}; copy it again`)
    }
    const buffer = await blob
      .slice(start, end)
      .arrayBuffer()
      .catch((cause: Error) => {
        throw new WeightsError('missing', `${path}: cannot be read: ${cause.message}; pick the file again`, { cause })
      })
    signal?.throwIfAborted()
    return new Uint8Array(buffer)
  }

  const size = async (path: string, signal?: AbortSignal): Promise<number | undefined> => {
    signal?.throwIfAborted()
    return blobs.get(path)?.size
  }
  return { name, remote: false, size, read }
}
