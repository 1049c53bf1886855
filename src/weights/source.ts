import { WeightsError } from '../errors.ts'
import { blobSource } from './source_blob.ts'
import { folderSource } from './source_folder.ts'
import { type HttpOptions, httpSource } from './source_http.ts'

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
}

/** Files by their path, as a page holds them. */
export type Files = Readonly<Record<string, Blob>>

export interface SourceOptions extends HttpOptions {
  /** Where `hf:` names lead, for mirrors. */
  readonly base?: string
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
  { base = 'https://huggingface.co', ...http }: SourceOptions = {},
): Source {
  if (typeof where !== 'string' && !(where instanceof URL)) {
    if (typeof where === 'object' && where !== null) return isSource(where) ? where : blobSource(where)
    throw new WeightsError('missing', `openSource: has ${where}, expected a folder, a URL, hf:owner/name or files`)
  }
  const text = String(where)
  if (text === '') throw new WeightsError('missing', 'openSource: has an empty name, expected a folder or a URL')
  if (text.startsWith('hf:')) return httpSource(text, hubUrl(text, base), http)
  if (/^https?:/i.test(text)) return httpSource(text, urlOf(text), http)
  if (/^[a-z][a-z\d+.-]+:\/\//i.test(text) && !text.startsWith('file:'))
    throw new WeightsError(
      'unsupported',
      `${text}: has a scheme that cannot be read, expected http, https, file or hf:owner/name`,
    )
  if (hasFiles()) return folderSource(where)
  if (text.startsWith('file:')) {
    throw new WeightsError('unsupported', `${text}: is on a disk that a browser cannot read; pass Files or an http URL`)
  }
  return httpSource(text, urlOf(text, location.href), http)
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

/** Node and Deno have a file system; a browser and its workers have not. */
const hasFiles = (): boolean => typeof process === 'object' && typeof process.versions?.node === 'string'

const isSource = (x: object): x is Source => 'read' in x && typeof x.read === 'function'

function hubUrl(name: string, base: string): URL {
  const [, repository, revision = 'main'] = /^hf:(\w[\w.-]*\/\w[\w.-]*)(?:@(.+))?$/.exec(name) ?? []
  if (repository === undefined) {
    throw new WeightsError(
      'format',
      `${name}: is not the name of a model; expected hf:owner/name or hf:owner/name@revision`,
    )
  }
  return new URL(`${repository}/resolve/${encodeURIComponent(revision)}/`, `${base.replace(/\/*$/, '')}/`)
}

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
