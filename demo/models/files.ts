import type { Files } from '../../src/index.ts'
import { embedded } from '../client.ts'
import type { ModelRef } from '../engine/models.ts'

/** All files of what was dropped, folders and what is in them too, by their path. */
export async function filesOf({ items }: DataTransfer): Promise<Files> {
  const found = [...items].map((item) => ({ entry: item.webkitGetAsEntry(), file: item.getAsFile() })) // gone later
  const lists = await Promise.all(
    found.map(({ entry, file }): Promise<[string, File][]> | [string, File][] => {
      if (entry) return walk(entry, '')
      return file ? [[file.name, file]] : [] // without a place on the disk
    }),
  )
  return Object.fromEntries(lists.flat())
}

async function walk(entry: FileSystemEntry, folder: string): Promise<[string, File][]> {
  const path = `${folder}${entry.name}`
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject))
    return [[path, file]]
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader()
  const found: FileSystemEntry[] = []
  for (;;) {
    // a reader gives some entries at a time, and none at the end
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject))
    if (some.length === 0) break
    found.push(...some)
  }
  return (await Promise.all(found.map((child) => walk(child, `${path}/`)))).flat()
}

/** What a picker of folders gives. */
export const picked = (files: FileList): Files =>
  Object.fromEntries([...files].map((file) => [file.webkitRelativePath || file.name, file]))

interface Folder {
  readonly title: string
  readonly kind: 'decider' | 'voice' | 'codec'
  readonly files: Files
}

/**
 * The models among files: each folder with a config.json is one. A voice takes the codec that came with it, else the
 * small one of the page. Rejects with what is missing.
 */
export async function modelsOf(files: Files): Promise<ModelRef[]> {
  const folders = await foldersOf(files)
  const codec = folders.find(({ kind }) => kind === 'codec')
  const models = folders.flatMap(({ title, kind, files: where }): ModelRef[] => {
    if (kind === 'codec') return []
    return [{ kind, title, where, ...(kind === 'voice' && { codec: codec?.files ?? embedded.voice.codec }) }]
  })
  if (models.length > 0) return models
  const has = folders.length > 0 ? 'a codec alone' : 'no config.json'
  throw new Error(`The ${Object.keys(files).length} files have ${has}; drop the folder of a Decider or of a voice.`)
}

async function foldersOf(files: Files): Promise<Folder[]> {
  const paths = Object.keys(files).filter((path) => /(^|\/)config\.json$/.test(path))
  return Promise.all(
    paths.map(async (path) => {
      const folder = path.slice(0, -'config.json'.length)
      const inside = Object.entries(files).filter(([each]) => each.startsWith(folder))
      const config = JSON.parse(await files[path]!.text())
      return {
        title: folder.split('/').at(-2) ?? 'dropped files',
        kind: 'prefix_conditioner' in config ? 'voice' : config.model_type === 'dac' ? 'codec' : 'decider',
        files: Object.fromEntries(inside.map(([each, file]) => [each.slice(folder.length), file])),
      }
    }),
  )
}
