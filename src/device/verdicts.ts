/** Remembers what probes found, across processes where the host has a place for it. */
export interface Verdicts {
  /**
   * The remembered verdict, or that of `trial`: a reason to do without, or undefined. What a trial began and never
   * ended, because the process died of it, is a reason too.
   */
  once(what: string, trial: () => Promise<string | undefined>): Promise<string | undefined>
}

/** A text that survives the process; `read` gives undefined where there is none. */
export interface Place {
  read(): Promise<string | undefined>
  write(text: string): Promise<void>
}

const RUNNING = 'the process died while it was tried'
/** Verdicts of another version are forgotten: its shaders are others. */
const VERSION = 1

export function rememberedVerdicts(place: Place): Verdicts {
  const load = async (): Promise<Record<string, string>> => {
    try {
      const stored = JSON.parse((await place.read()) ?? '') as { version?: unknown; verdicts?: Record<string, string> }
      return stored.version === VERSION && stored.verdicts ? stored.verdicts : {}
    } catch {
      return {} // nothing there yet, or not ours: tried again
    }
  }
  const store = async (what: string, verdict: string): Promise<void> => {
    const verdicts = { ...(await load()), [what]: verdict }
    await place.write(JSON.stringify({ version: VERSION, verdicts })).catch(() => undefined) // read-only: tried every time
  }
  return {
    async once(what, trial) {
      const known = (await load())[what]
      if (known !== undefined) return known || undefined
      await store(what, RUNNING)
      let verdict: string | undefined
      try {
        verdict = await trial()
      } catch (error) {
        await forget(what)
        throw error
      }
      await store(what, verdict ?? '')
      return verdict
    },
  }

  /** A trial that could not be made says nothing about the variant. */
  async function forget(what: string): Promise<void> {
    const { [what]: _, ...verdicts } = await load()
    await place.write(JSON.stringify({ version: VERSION, verdicts })).catch(() => undefined)
  }
}

/** Where this host keeps verdicts: a file in the user's cache folder in Node, the origin's storage in a browser. */
export function defaultPlace(): Place {
  const storage = globalThis.localStorage as Storage | undefined
  if (globalThis.process?.versions?.node && !('Deno' in globalThis)) return cacheFile()
  if (!storage) return { read: async () => undefined, write: async () => {} } // a worker, or Deno: tried every time
  const key = 'pronounce.verdicts'
  return { read: async () => storage.getItem(key) ?? undefined, write: async (text) => storage.setItem(key, text) }
}

function cacheFile(): Place {
  const path = async (): Promise<string> => {
    const { join } = await import('node:path')
    const { homedir } = await import('node:os')
    return join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'pronounce', 'verdicts.json')
  }
  return {
    async read() {
      const { readFile } = await import('node:fs/promises')
      return readFile(await path(), 'utf8')
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
