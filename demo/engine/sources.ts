import { type CachedModel, type Files, knownModels, openCache, openSource, type Source } from '../../src/index.ts'

export type { CachedModel, KnownModel } from '../../src/index.ts'
export { knownModels }

/** Of a file that comes from the network, or of a model on its way onto the device. */
export interface Transfer {
  readonly what: string
  readonly loadedBytes: number
  readonly totalBytes: number
}

const cache = openCache()
export const cachedModels = (): Promise<readonly CachedModel[]> => cache.list()
export const removeCached = async (name: string): Promise<void> => void (await cache.remove(name))

/** Whether a URL is of this site, whose own models its service worker keeps. */
const isOwn = (where: string): boolean => where.startsWith(`${location.origin}/`)

/** The files of a model; what comes from another site comes by way of the cache. */
export function sourceOf(where: string | Files, onTransfer: (transfer: Transfer) => void): Source {
  if (typeof where !== 'string' || isOwn(where)) return openSource(where)
  return openSource(where, { cache, onProgress: ({ file, ...transfer }) => onTransfer({ what: file, ...transfer }) })
}
