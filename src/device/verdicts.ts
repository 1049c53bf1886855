import type { Place } from './place.ts'

/** Remembers what probes found, across processes where the host has a place for it. */
export interface Verdicts {
  /**
   * The remembered verdict, or that of `trial`: a reason to do without, or undefined. What a trial began and never
   * ended, because the process died of it, is a reason too.
   */
  once(what: string, trial: () => Promise<string | undefined>): Promise<string | undefined>
}

/** Verdicts of another version are forgotten: its shaders are others. */
const VERSION = 2
const died = 'the process died while it was tried'

/** A verdict: the reason to do without, '' where there is none, or the process that is trying. */
type Verdict = string | { readonly triedBy: number }

/** `alive`: is this process still running? Another one may be trying just now. */
export function rememberedVerdicts(place: Place, alive: (pid: number) => boolean = isAlive): Verdicts {
  const trials = new Map<string, Promise<string | undefined>>() // of this process, which may have several devices

  const load = async (): Promise<Record<string, Verdict>> => {
    try {
      const stored = JSON.parse((await place.read()) ?? '') as { version?: unknown; verdicts?: Record<string, Verdict> }
      return stored.version === VERSION && stored.verdicts ? stored.verdicts : {}
    } catch {
      return {} // nothing there yet, or not ours: tried again
    }
  }
  const store = async (what: string, verdict: Verdict | undefined): Promise<void> => {
    const { [what]: _, ...others } = await load()
    const verdicts = verdict === undefined ? others : { ...others, [what]: verdict }
    await place.write(JSON.stringify({ version: VERSION, verdicts })).catch(() => undefined) // read-only: tried every time
  }

  async function decide(what: string, trial: () => Promise<string | undefined>): Promise<string | undefined> {
    const known = (await load())[what]
    if (typeof known === 'string') return known || undefined
    if (known && !alive(known.triedBy)) {
      await store(what, died)
      return died
    }
    await store(what, { triedBy: self })
    try {
      const verdict = await trial()
      await store(what, verdict ?? '')
      return verdict
    } catch (error) {
      await store(what, undefined) // a trial that could not be made says nothing about the variant
      throw error
    }
  }

  return {
    once(what, trial) {
      const running = trials.get(what) ?? decide(what, trial)
      trials.set(what, running)
      running.catch(() => trials.delete(what))
      return running
    },
  }
}

/** A page has no process id; it is taken for dead when it is loaded again. */
const self = globalThis.process?.pid ?? 0

function isAlive(pid: number): boolean {
  if (pid === self) return false // an earlier process of this number, or an earlier load of this page
  try {
    return globalThis.process?.kill?.(pid, 0) ?? false
  } catch (error) {
    return (error as { code?: string }).code === 'EPERM' // there, and somebody else's
  }
}
