import { DeviceError } from '../../errors.ts'
import { COPY_SRC, QUERY_RESOLVE } from './memory.ts'
import type { Parts } from './parts.ts'

export interface Stopwatch {
  /** What the pass of dispatch i is to write. */
  pass(i: number): GPUComputePassTimestampWrites
  resolve(encoder: GPUCommandEncoder): void
  /** Milliseconds of each dispatch, and from the first one's begin to the last one's end. */
  read(): Promise<{ readonly ms: readonly number[]; readonly spanMs: number }>
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
      const between = (a: number, b: number): number => Number(ns[b]! - ns[a]!) / 1e6
      const ms = Array.from({ length: dispatches }, (_, i) => between(2 * i, 2 * i + 1))
      return { ms, spanMs: dispatches ? between(0, 2 * dispatches - 1) : 0 }
    },
    dispose() {
      memory.destroy(buffer)
      querySet.destroy()
    },
  }
}
