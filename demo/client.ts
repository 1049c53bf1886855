import { proxy, type Remote, wrap } from 'comlink'
import type { Engine } from './engine/engine.ts'
import type { ModelRef } from './engine/models.ts'

/** Models that come with the page. */
const beside = (name: string): string => new URL(`models/${name}/`, document.baseURI).href
export const embedded = {
  decider: { kind: 'decider', title: 'decider-nano', where: beside('decider-nano') },
  voice: { kind: 'voice', title: 'zonos-nano', where: beside('zonos-nano'), codec: beside('dac-nano') },
} as const satisfies { [kind in ModelRef['kind']]: ModelRef }

const worker = new Worker(new URL('engine/worker.ts', import.meta.url), { type: 'module', name: 'engine' })
worker.postMessage(embedded)
export const engine: Remote<Engine> = wrap(worker)

let calls = 0

/** A call of the engine that ends at once for the page when it is aborted; the engine hears of it too. */
export function call<A>(signal: AbortSignal, make: (id: number) => Promise<A>): Promise<A> {
  const id = ++calls
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      reject(signal.reason)
      engine.abort(id)
    }
    if (signal.aborted) return reject(signal.reason)
    signal.addEventListener('abort', abort)
    make(id)
      .then(resolve, reject)
      .finally(() => signal.removeEventListener('abort', abort))
  })
}

/** A function of the page that the engine may call. */
export const callback = <F extends (...args: never[]) => void>(f: F): F => proxy(f)

export const isAbort = (error: unknown): boolean => (error as Error).name === 'AbortError'
export const messageOf = (error: unknown): string => (error as Error).message ?? String(error)
