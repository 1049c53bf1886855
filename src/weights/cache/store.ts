import { WeightsError } from '../../errors.ts'
import { hasFiles } from '../host.ts'

/** Small files by path, which several tabs or processes may use at once. Paths have forward slashes. */
export interface Store {
  /** For messages: the folder, or 'the storage of this site'. */
  readonly name: string
  /** All files below a folder; none where there is no such folder. */
  list(folder: string): Promise<readonly Stored[]>
  stat(path: string): Promise<Stored | undefined>
  /** WeightsError 'missing' for what is not there. */
  read(path: string, start: number, end: number, signal?: AbortSignal): Promise<Uint8Array>
  /** The whole file at once: others see it as it was or as it is. One writer at a time. WeightsError 'space' where it is full. */
  write(path: string, bytes: Uint8Array): Promise<void>
  /** A file, or a folder with all that is in it; nothing where there is none. */
  remove(path: string): Promise<void>
  /** Bytes that can still be written; undefined where the host does not say. */
  room(): Promise<number | undefined>
  /** Runs `work` while nobody else, in no tab or process, holds the lock of this name. */
  locked<A>(name: string, work: (signal: AbortSignal | undefined) => Promise<A>, signal?: AbortSignal): Promise<A>
}

export interface Stored {
  readonly path: string
  readonly bytes: number
  /** Milliseconds of the last change. */
  readonly modified: number
}

/** The store of this host; its modules are loaded when it is first used. `folder`: in Node and Deno. */
export function openStore(folder: string | undefined): Promise<Store> {
  if (hasFiles()) return import('./store_folder.ts').then(({ folderStore }) => folderStore(folder))
  return import('./store_opfs.ts').then(({ opfsStore }) => opfsStore(folder ?? 'pronounce'))
}

/** Any name as one part of a path that every file system takes. */
export const part = (name: string): string =>
  encodeURIComponent(name).replace(/[*'()!~]/g, (c) => `%${c.charCodeAt(0).toString(16)}`)

/** Undefined where there is none, or nothing that is JSON. */
export async function readJson(store: Store, path: string): Promise<unknown> {
  const found = await store.stat(path)
  if (!found) return undefined
  try {
    return JSON.parse(new TextDecoder().decode(await store.read(path, 0, found.bytes)))
  } catch {
    return undefined // damaged, or just removed
  }
}

export const writeJson = (store: Store, path: string, value: unknown): Promise<void> =>
  store.write(path, new TextEncoder().encode(JSON.stringify(value)))

export const full = (store: string, cause: unknown): WeightsError =>
  new WeightsError('space', `${store}: has no room left; remove models from the cache, or load without it`, { cause })
