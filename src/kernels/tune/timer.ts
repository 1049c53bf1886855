import type { Device, Profile } from '../../device/device.ts'
import { Graph } from '../../graph/graph.ts'
import type { Counts, Tensor } from '../../graph/tensor.ts'

/** One step, repeated, to be timed at any height (rows of a run). */
export interface Timer {
  /** Keeps the device busy for so long, so that its clock is up. */
  warm(rows: number, ms: number): Promise<void>
  /** Milliseconds of the step, several times. */
  time(rows: number): Promise<number[]>
  dispose(): void
}

export interface TimerOptions<A> {
  /** Records what the step reads, from the indices of the run's rows ['T'] u32. */
  readonly before: (graph: Graph, ids: Tensor) => A
  /** Records the step, for the i-th time. */
  readonly step: (graph: Graph, reads: A, i: number) => void
  readonly repeats: number
  readonly clock: Clock
  readonly signal?: AbortSignal | undefined
}

/** How a device tells time: by timestamps of every dispatch, or only by when runs are done. */
export type Clock = 'timestamps' | 'runs'

/** Compiles the step; a shader that does not compile rejects. */
export async function timer<A>(
  device: Device,
  { before, step, repeats, clock, signal }: TimerOptions<A>,
): Promise<Timer> {
  const graph = new Graph(device.target)
  const reads = before(graph, graph.input('ids', ['T'], 'u32'))
  for (let i = 0; i < repeats; i++) step(graph, reads, i)
  const program = await device.compile(graph)
  const run = (rows: number, onProfile?: (p: Profile) => void) =>
    program.run({ ids: indices(rows) }, countsOf(rows), { onProfile })

  /** Runs that the device does one after another without a pause, in milliseconds. */
  const together = async (rows: number, runs: number): Promise<number> => {
    signal?.throwIfAborted() // here alone: runs are short, and many listen at once
    const start = performance.now()
    const all = await Promise.allSettled(Array.from({ length: runs }, () => run(rows)))
    const failed = all.find((r) => r.status === 'rejected')
    if (failed) throw failed.reason
    await device.flush() // nothing is read back, so that runs are over when they are sent
    return performance.now() - start
  }

  return {
    async warm(rows, ms) {
      for (let spent = 0; spent < ms; ) spent += await together(rows, 2)
    },
    async time(rows) {
      if (clock === 'timestamps') {
        let profile: Profile | undefined
        await run(rows, (p) => {
          profile = p
        })
        return profile!.dispatches.slice(-repeats + 1).map(({ ms }) => ms) // the first one finds x in no cache
      }
      let runs = 1
      while ((await together(rows, runs)) < BATCH_MS) runs *= 2
      return [await together(rows, runs), await together(rows, runs)].map((ms) => ms / runs / repeats)
    },
    dispose: program.dispose,
  }
}
/** Long against a submit and the way back. */
const BATCH_MS = 20

/** Browsers round timestamps, so that a dispatch takes nothing or a hundred microseconds; then runs tell more. */
export async function clockOf(device: Device, trial: (clock: Clock) => Promise<Timer>): Promise<Clock> {
  if (device.kind === 'webgpu' && !device.target.features.has('timestamp-query')) return 'runs'
  const timer = await trial('timestamps')
  try {
    return isCoarse(await timer.time(1)) ? 'runs' : 'timestamps'
  } finally {
    timer.dispose()
  }
}

/** Are these multiples of what browsers round to, in milliseconds? */
export const isCoarse = (ms: readonly number[]): boolean =>
  [0.1, 0.065536].some((grid) => ms.every((t) => Math.abs(t / grid - Math.round(t / grid)) < 1e-4))

const indices = (rows: number): Uint32Array => Uint32Array.from({ length: rows }, (_, i) => i)
const countsOf = (rows: number): Counts => ({ T: rows, S: 1, C: 1, R: 1 })

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}
