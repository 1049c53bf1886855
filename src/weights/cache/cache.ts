import { WeightsError } from '../../errors.ts'
import type { HttpOptions } from '../http.ts'
import { filesUrl, type HubName, type Listing, listHub, namedCommit } from '../hub.ts'
import { httpRemote } from '../remote.ts'
import type { FileRecord } from './download.ts'
import type { Home } from './source.ts'
import { openStore, part, readJson, type Store, writeJson } from './store.ts'

/** Models that were loaded from elsewhere: in a folder in Node and Deno, in a site's private file system in a browser. */
export interface Cache {
  /** The folder, or 'the storage of this site'. */
  path(): Promise<string>
  list(): Promise<readonly CachedModel[]>
  /**
   * Deletes a model: `hf:owner/name` with all its revisions, one with its revision, a URL. Waits for a download of it in
   * another tab or process. WeightsError 'missing' where there is none.
   *
   * @returns bytes freed
   */
  remove(name: string): Promise<number>
  /** @internal */
  readonly store: () => Promise<Store>
}

export interface CachedModel {
  /** hf:owner/name@commit, or a URL. */
  readonly name: string
  /** In the cache. */
  readonly bytes: number
  readonly files: number
  /** Every file that was begun is there; false after a download that was interrupted. */
  readonly complete: boolean
}

export interface CacheOptions {
  /** Node and Deno: default PRONOUNCE_CACHE/models, else pronounce/models in the user's folder of caches. */
  readonly folder?: string | undefined
}

/** What a revision stood for when it was first loaded. */
interface Ref extends Partial<Listing> {
  readonly repository: string
  readonly revision: string
  readonly commit: string
}

interface Entry {
  readonly name: string
  readonly folder: string // of the source
  readonly files: { readonly folder: string; readonly bytes: number; readonly complete: boolean }[]
}

/** The cache of this host; nothing is touched before it is used. */
export function openCache({ folder }: CacheOptions = {}): Cache {
  let opened: Promise<Store> | undefined
  const store = (): Promise<Store> => {
    opened ??= openStore(folder)
    opened.catch(() => (opened = undefined))
    return opened
  }
  return {
    store,
    path: async () => (await store()).name,
    async list() {
      const { entries } = await survey(await store())
      return entries.map(({ name, files }) => ({
        name,
        bytes: files.reduce((sum, file) => sum + file.bytes, 0),
        files: files.length,
        complete: files.every((file) => file.complete),
      }))
    },
    async remove(name) {
      const kept = await store()
      const { entries, refs } = await survey(kept)
      const commits = refs.filter(([, ref]) => `hf:${ref.repository}@${ref.revision}` === name)
      const wanted = new Set([name, ...commits.map(([, { repository, commit }]) => `hf:${repository}@${commit}`)])
      const isMeant = (found: string): boolean => wanted.has(found) || found.startsWith(`${name}@`)
      const meant = entries.filter((entry) => isMeant(entry.name))
      const stale = refs.filter(([, { repository, commit }]) => isMeant(`hf:${repository}@${commit}`))
      if (meant.length + stale.length === 0)
        throw new WeightsError('missing', `cache: has no ${name}; expected one of those that it lists`)
      for (const [path] of stale) await kept.remove(path)
      for (const entry of meant) {
        for (const file of entry.files) await kept.locked(file.folder, () => kept.remove(file.folder))
        await kept.remove(entry.folder)
      }
      return meant.flatMap(({ files }) => files).reduce((sum, { bytes }) => sum + bytes, 0)
    },
  }
}

async function survey(store: Store): Promise<{ entries: Entry[]; refs: [string, Ref][] }> {
  const entries = new Map<string, Entry>()
  const refs: [string, Ref][] = []
  const sizes = new Map<string, number>()
  const all = await store.list('')
  const folderOf = (path: string): string => path.slice(0, path.lastIndexOf('/'))
  for (const { path, bytes } of all) sizes.set(folderOf(path), (sizes.get(folderOf(path)) ?? 0) + bytes)
  for (const { path } of all) {
    if (/(^|\/)%40[^/]*\.json$/.test(path)) refs.push([path, (await readJson(store, path)) as Ref])
    if (!path.endsWith('/record.json')) continue
    const record = (await readJson(store, path)) as (FileRecord & { absent?: true }) | undefined
    if (!record || record.absent) continue
    const folder = folderOf(path)
    const depth = record.path.split('/').length
    const entry = entries.get(record.source) ?? {
      name: record.source,
      folder: folder.split('/').slice(0, -depth).join('/'),
      files: [],
    }
    entry.files.push({ folder, bytes: sizes.get(folder)!, complete: record.modified !== undefined })
    entries.set(record.source, entry)
  }
  const sorted = [...entries.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
  return { entries: sorted, refs: refs.filter(([, ref]) => ref?.commit) }
}

/** Where the files of a URL are kept. */
export const urlHome = async (cache: Cache, name: string, url: URL, http: HttpOptions): Promise<Home> => ({
  store: await cache.store(),
  folder: folderOfUrl(url),
  remote: httpRemote(name, url, http),
  pinned: false,
})

/**
 * Where the files of a model of the hub are kept. The commit that its revision stands for is asked once and kept, until
 * the model is removed from the cache.
 */
export async function hubHome(
  cache: Cache,
  base: string,
  name: HubName,
  http: HttpOptions,
  { offline = false, signal }: { offline?: boolean | undefined; signal: AbortSignal | undefined },
): Promise<Home> {
  const store = await cache.store()
  const { repository } = name
  const folder = folderOfUrl(new URL(repository, base))
  const pathOf = (revision: string): string => `${folder}/${part(`@${revision}`)}.json`
  const kept = (await readJson(store, pathOf(name.revision))) as Ref | undefined
  const { commit, files } = kept ?? (await ask())
  const remote = httpRemote(`hf:${repository}@${commit}`, filesUrl(base, { repository, revision: commit }), http)
  const at = { store, folder: `${folder}/${part(commit)}` }
  if (!files) return { ...at, remote, pinned: false }
  const stat = async (path: string) => (Object.hasOwn(files, path) ? files[path] : undefined)
  return { ...at, remote: { ...remote, stat }, pinned: true }

  async function ask(): Promise<Ref> {
    if (offline)
      throw new WeightsError(
        'missing',
        `hf:${repository}@${name.revision}: is not in the cache; load it once without offline`,
      )
    const listing = await listHub(base, name, http, signal)
    const commit = listing?.commit ?? (await namedCommit(base, name, http, signal))
    const ref: Ref = { ...name, commit, ...(listing && { files: listing.files }) }
    for (const revision of new Set([name.revision, commit])) {
      const at = pathOf(revision)
      await store.locked(at, () => writeJson(store, at, { ...ref, revision }), signal)
    }
    return ref
  }
}

const folderOfUrl = ({ protocol, host, pathname }: URL): string =>
  [protocol === 'https:' ? host : `${protocol}${host}`, ...pathname.split('/').filter(Boolean).map(decodeURIComponent)]
    .map(part)
    .join('/')
