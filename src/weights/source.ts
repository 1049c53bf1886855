import { WeightsError } from '../errors.ts'
import { type Cache, hubHome, openCache, urlHome } from './cache/cache.ts'
import { type CachedOptions, cachedSource } from './cache/source.ts'
import { hasFiles } from './host.ts'
import { authorized, filesUrl, type HubOptions, hubBase, parseHubName } from './hub.ts'
import { httpRemote } from './remote.ts'
import { blobSource } from './source_blob.ts'
import { folderSource } from './source_folder.ts'
import { httpSource } from './source_http.ts'

/** Where the files of a checkpoint come from. Paths are relative, with forward slashes. */
export interface Source {
  /** For messages: 'public/models/decider-nano', 'hf:Mapika/decider-0.8b@main'. */
  readonly name: string
  /** A read costs a network round trip, so what is read again and again should be held in memory. */
  readonly remote: boolean
  /** Size of a file in bytes; undefined when there is no such file. */
  size(path: string, signal?: AbortSignal): Promise<number | undefined>
  /** Bytes [start, end) of a file. WeightsError 'missing' where the file is not there or shorter. */
  read(path: string, start: number, end: number, signal?: AbortSignal): Promise<Uint8Array>
  /** Called before the bulk of these files is read: a cache brings them here whole. */
  prepare?(paths: readonly string[], signal?: AbortSignal): Promise<void>
}

/** Files by their path, as a page holds them. */
export type Files = Readonly<Record<string, Blob>>

export interface SourceOptions extends HubOptions, CachedOptions {
  /**
   * Keeps what comes from the network: true for the cache of this host, or one that `openCache` opened. Default: true
   * with `offline`, else false: each load streams anew, and tables that stay on the host are held in memory.
   */
  readonly cache?: boolean | Cache | undefined
}

/**
 * Opens a folder of files; nothing is read yet.
 *
 * - `hf:owner/name[@revision]`: a model of huggingface.co
 * - an http(s) URL: the folder that holds the files
 * - another string or a file: URL: a folder on disk in Node and Deno, a URL relative to the page in a browser
 * - Blobs by path, or the Files of a dropped folder
 */
export function openSource(
  where: string | URL | Files | readonly File[] | Source,
  options: SourceOptions = {},
): Source {
  if (typeof where !== 'string' && !(where instanceof URL)) {
    if (typeof where === 'object' && where !== null) return isSource(where) ? where : blobSource(where)
    throw new WeightsError('missing', `openSource: has ${where}, expected a folder, a URL, hf:owner/name or files`)
  }
  const text = String(where)
  if (text === '') throw new WeightsError('missing', 'openSource: has an empty name, expected a folder or a URL')
  if (text.startsWith('hf:')) return fromHub(text, options)
  if (/^https?:/i.test(text)) return fromUrl(text, urlOf(text), options)
  if (/^[a-z][a-z\d+.-]+:\/\//i.test(text) && !text.startsWith('file:'))
    throw new WeightsError(
      'unsupported',
      `${text}: has a scheme that cannot be read, expected http, https, file or hf:owner/name`,
    )
  if (hasFiles()) return folderSource(where)
  if (text.startsWith('file:')) {
    throw new WeightsError('unsupported', `${text}: is on a disk that a browser cannot read; pass Files or an http URL`)
  }
  return fromUrl(text, urlOf(text, location.href), options)
}

function cacheOf({ cache, offline = false }: SourceOptions): Cache | undefined {
  if (offline && cache === false)
    throw new WeightsError('unsupported', 'openSource: has offline and no cache, expected a cache or the network')
  return cache === true || (cache === undefined && offline) ? openCache() : cache || undefined
}

function fromUrl(name: string, url: URL, options: SourceOptions): Source {
  const http = authorized(options, false)
  const cache = cacheOf(options)
  if (!cache) return httpSource(httpRemote(name, url, http))
  return cachedSource(name, () => urlHome(cache, url.href, url, http), options)
}

function fromHub(name: string, options: SourceOptions): Source {
  const [base, hubName, http] = [hubBase(options.base), parseHubName(name), authorized(options, true)]
  const cache = cacheOf(options)
  if (!cache) return httpSource(httpRemote(name, filesUrl(base, hubName), http))
  const { offline } = options
  return cachedSource(name, (signal) => hubHome(cache, base, hubName, http, { offline, signal }), options)
}

/** A URL below which files lie: its query would be lost. */
function urlOf(text: string, base?: string): URL {
  let url: URL
  try {
    url = new URL(text, base)
  } catch (cause) {
    throw new WeightsError('format', `${text}: is not a URL; expected https://host/folder`, { cause })
  }
  if (url.search || url.hash)
    throw new WeightsError(
      'unsupported',
      `${text}: has a query, expected the URL of a folder; pass headers for a token`,
    )
  return url
}

const isSource = (x: object): x is Source => 'read' in x && typeof x.read === 'function'

/** A whole file. */
export async function readFile(source: Source, path: string, signal?: AbortSignal): Promise<Uint8Array> {
  const size = await source.size(path, signal)
  if (size === undefined) throw new WeightsError('missing', `${source.name}: has no ${path}; add the file`)
  return source.read(path, 0, size, signal)
}

export async function readText(source: Source, path: string, signal?: AbortSignal): Promise<string> {
  const bytes = await readFile(source, path, signal)
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    throw new WeightsError('format', `${source.name}/${path}: is not UTF-8 text`, { cause })
  }
}

export async function readJson(source: Source, path: string, signal?: AbortSignal): Promise<unknown> {
  const text = await readText(source, path, signal)
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new WeightsError('format', `${source.name}/${path}: is not JSON: ${(cause as Error).message}`, { cause })
  }
}
