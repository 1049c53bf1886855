/** A text that survives the process; `read` gives undefined where there is none. */
export interface Place {
  read(): Promise<string | undefined>
  write(text: string): Promise<void>
}

/** Where this host keeps something: a file in the user's cache folder in Node, the origin's storage in a browser. */
export function defaultPlace(name: string): Place {
  if (globalThis.process?.versions?.node && !('Deno' in globalThis)) return cacheFile(`${name}.json`)
  const storage = pageStorage()
  if (!storage) return { read: async () => undefined, write: async () => {} } // found out anew every time
  const key = `pronounce.${name}`
  return { read: async () => storage.getItem(key) ?? undefined, write: async (text) => storage.setItem(key, text) }
}

/** Workers have none, and a page whose storage is blocked throws at the mere sight of it. */
function pageStorage(): Storage | undefined {
  try {
    return globalThis.localStorage
  } catch {
    return undefined
  }
}

/**
 * The folder of all that this package keeps in Node and Deno: PRONOUNCE_CACHE, or pronounce in XDG_CACHE_HOME, else in
 * the platform's folder of caches.
 */
export async function cacheFolder(): Promise<string> {
  const { join } = await import('node:path')
  const { homedir } = await import('node:os')
  const { PRONOUNCE_CACHE, XDG_CACHE_HOME, LOCALAPPDATA } = process.env
  if (PRONOUNCE_CACHE) return PRONOUNCE_CACHE
  const home = { darwin: 'Library/Caches', win32: 'AppData/Local' }[process.platform as string] ?? '.cache'
  return join(XDG_CACHE_HOME || LOCALAPPDATA || join(homedir(), home), 'pronounce')
}

function cacheFile(name: string): Place {
  const path = async (): Promise<string> => {
    const { join } = await import('node:path')
    return join(await cacheFolder(), name)
  }
  return {
    async read() {
      const { readFile } = await import('node:fs/promises')
      return readFile(await path(), 'utf8').catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return undefined
        throw error
      })
    },
    async write(text) {
      const { mkdir, rename, writeFile } = await import('node:fs/promises')
      const { dirname } = await import('node:path')
      const file = await path()
      await mkdir(dirname(file), { recursive: true })
      await writeFile(`${file}.${process.pid}`, text)
      await rename(`${file}.${process.pid}`, file) // never half a file
    },
  }
}
