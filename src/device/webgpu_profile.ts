import { DeviceError } from '../errors.ts'
import { COPY_SRC, QUERY_RESOLVE } from './webgpu_memory.ts'
import type { Parts } from './webgpu.ts'

export interface Stopwatch {
  /** What the pass of dispatch i is to write. */
  pass(i: number): GPUComputePassTimestampWrites
  resolve(encoder: GPUCommandEncoder): void
  /** Milliseconds of each dispatch. */
  read(): Promise<number[]>
  dispose(): void
}

/** Times every dispatch with a pass of its own and two timestamps around it. */
export async function stopwatch({ gpu, memory, download }: Parts, dispatches: number): Promise<Stopwatch> {
  if (!gpu.features.has('timestamp-query'))
    throw new DeviceError(
      'unavailable',
      'profile: this device has no timestamp-query; profile on another or on the CPU',
    )
  const size = 16 * dispatches
  const buffer = await memory.make('timestamps', size, QUERY_RESOLVE | COPY_SRC)
  const querySet = gpu.createQuerySet({ type: 'timestamp', count: 2 * dispatches })
  return {
    pass: (i) => ({ querySet, beginningOfPassWriteIndex: 2 * i, endOfPassWriteIndex: 2 * i + 1 }),
    resolve: (encoder) => encoder.resolveQuerySet(querySet, 0, 2 * dispatches, buffer, 0),
    async read() {
      const ns = new BigUint64Array((await download(buffer, size)).buffer)
      return Array.from({ length: dispatches }, (_, i) => Number(ns[2 * i + 1]! - ns[2 * i]!) / 1e6)
    },
    dispose() {
      memory.destroy(buffer)
      querySet.destroy()
    },
  }
}

export interface Pace {
  /** Cuts a run's dispatches into submits. */
  pieces(costs: readonly { flops: number; bytes: number }[]): { from: number; to: number }[]
  /** The whole time of the last run. */
  learn(ms: number): void
}

const FIRST = 24 // about two layers: the GPU starts while the rest is encoded
const LONGEST_MS = 100

/** Estimates from counted work how long dispatches take, and corrects itself by the runs it sees. */
export function pace(software: boolean): Pace {
  let flopsPerMs = software ? 1e6 : 1e9
  let bytesPerMs = software ? 2e6 : 1e8
  let estimate = 0
  return {
    pieces(costs) {
      const pieces: { from: number; to: number }[] = []
      let [from, ms] = [0, 0]
      estimate = 0
      costs.forEach(({ flops, bytes }, i) => {
        const cost = Math.max(flops / flopsPerMs, bytes / bytesPerMs)
        estimate += cost
        ms += cost
        const full = ms > LONGEST_MS || (pieces.length === 0 && i + 1 === FIRST)
        if (!full && i + 1 < costs.length) return
        pieces.push({ from, to: i + 1 })
        from = i + 1
        ms = 0
      })
      return pieces
    },
    learn(ms) {
      if (!(estimate > 1)) return // too short to tell the work from the way
      const ratio = Math.min(2, Math.max(0.5, estimate / ms))
      flopsPerMs *= ratio
      bytesPerMs *= ratio
    },
  }
}
