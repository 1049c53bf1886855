import { openCache } from '../../../src/weights/cache/cache.ts'
import { sha256 } from '../../../src/weights/sha256.ts'
import { openSource } from '../../../src/weights/source.ts'

export { openCache }

export interface Load {
  readonly name: string
  readonly base: string
  readonly offline?: boolean
  /** Aborts when so many bytes are there. */
  readonly stopAt?: number
}

/** Brings model.safetensors into the cache and reads all of it: its hash, how often progress was told, its last bytes. */
export async function load({ name, base, offline, stopAt = Number.POSITIVE_INFINITY }: Load) {
  const controller = new AbortController()
  const { signal } = controller
  const seen: number[] = []
  const source = openSource(name, {
    ...{ base, token: 'secret', cache: true, offline, retry: { times: 2, ms: 10 } },
    onProgress({ loadedBytes }) {
      seen.push(loadedBytes)
      if (loadedBytes >= stopAt) controller.abort(new Error('stopped'))
    },
  })
  const path = 'model.safetensors'
  await source.prepare!([path], signal)
  const bytes = (await source.size(path, signal))!
  const hash = await sha256()
  for (let at = 0; at < bytes; at += 2 ** 20) hash.update(await source.read(path, at, Math.min(bytes, at + 2 ** 20)))
  return { digest: hash.digest(), first: seen[0], last: seen.at(-1) }
}
