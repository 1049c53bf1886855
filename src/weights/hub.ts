import { WeightsError } from '../errors.ts'
import { createHttp, type HttpOptions, refused } from './http.ts'
import { knownModels } from './known_models.ts'
import type { RemoteFile } from './remote.ts'

export interface HubOptions extends HttpOptions {
  /** Where `hf:` names lead: a mirror. Default: HF_ENDPOINT in Node and Deno, else https://huggingface.co. */
  readonly base?: string | undefined
  /**
   * Of a private model: a Bearer token. Default in Node and Deno: HF_TOKEN, for the default `base` alone. It goes to the
   * origin that is asked and to none that it redirects to.
   */
  readonly token?: string | undefined
}

export interface HubName {
  readonly repository: string
  readonly revision: string
}

/** A repository at a commit: all files, with their hashes where the hub stores them by hash. */
export interface Listing {
  readonly commit: string
  readonly files: Readonly<Record<string, RemoteFile>>
}

/** hf:owner/name[@revision] */
export function parseHubName(name: string): HubName {
  const [, repository, revision] = /^hf:(\w[\w.-]*\/\w[\w.-]*)(?:@(.+))?$/.exec(name) ?? []
  if (repository === undefined)
    throw new WeightsError(
      'format',
      `${name}: is not the name of a model; expected hf:owner/name or hf:owner/name@revision`,
    )
  const known = knownModels.find((model) => model.name === `hf:${repository}`)
  return { repository, revision: revision ?? known?.revision ?? 'main' }
}

export const hubBase = (base: string | undefined): string =>
  (base ?? (environment('HF_ENDPOINT') || 'https://huggingface.co')).replace(/\/*$/, '/')

export const filesUrl = (base: string, { repository, revision }: HubName): URL =>
  new URL(`${repository}/resolve/${encodeURIComponent(revision)}/`, base)

/** Options for a server, with the token among the headers. */
export function authorized({ base, token, headers, ...http }: HubOptions, hub: boolean): HttpOptions {
  const bearer = token ?? (hub && base === undefined ? environment('HF_TOKEN') : undefined)
  if (!bearer) return headers ? { ...http, headers } : http
  const all = new Headers(headers)
  if (!all.has('authorization')) all.set('authorization', `Bearer ${bearer}`)
  return { ...http, headers: all }
}

/**
 * Asks the hub what a revision stands for. The hashes of large files come from here: files themselves are redirected to
 * a store whose ETag is another hash. Undefined where this hub does not answer that, as plain mirrors do not.
 */
export async function listHub(
  base: string,
  { repository, revision }: HubName,
  options: HttpOptions,
  signal: AbortSignal | undefined,
): Promise<Listing | undefined> {
  const url = new URL(`api/models/${repository}/revision/${encodeURIComponent(revision)}?blobs=true`, base).href
  const reply = await createHttp(options).request('GET', url, undefined, signal)
  if ([404, 405, 501].includes(reply.status)) return void (await reply.body?.cancel())
  if (!reply.ok) throw await refused(reply)
  const text = await reply.text()
  signal?.throwIfAborted()
  try {
    return parseListing(JSON.parse(text))
  } catch {
    return undefined // a page: this server has no such answers
  }
}

/** The commit that a mirror names in its headers, or the revision itself. */
export async function namedCommit(
  base: string,
  name: HubName,
  options: HttpOptions,
  signal: AbortSignal | undefined,
): Promise<string> {
  const config = new URL('config.json', filesUrl(base, name)).href
  const reply = await createHttp(options).request('HEAD', config, undefined, signal)
  await reply.body?.cancel()
  return reply.headers.get('x-repo-commit') ?? name.revision
}

interface Sibling {
  readonly rfilename: string
  readonly size: number
  readonly lfs?: { readonly sha256: string } | null
}

function parseListing(json: { sha?: unknown; siblings?: readonly Sibling[] }): Listing | undefined {
  const { sha, siblings } = json
  if (typeof sha !== 'string' || !/^[\da-f]{40}$/.test(sha) || !siblings) return undefined
  const files = siblings.map(({ rfilename, size, lfs }): [string, RemoteFile] => {
    if (typeof rfilename !== 'string' || !Number.isSafeInteger(size)) throw new TypeError('not a listing')
    return [rfilename, { bytes: size, sha256: lfs?.sha256 }]
  })
  return { commit: sha, files: Object.fromEntries(files) }
}

/** Of a process; pages have none, and Deno may not be allowed to look. */
function environment(name: string): string | undefined {
  try {
    return globalThis.process?.env?.[name]
  } catch {
    return undefined
  }
}
