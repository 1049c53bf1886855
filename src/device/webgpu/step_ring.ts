import type { Counts } from '../../graph/tensor.ts'
import { COPY_DST, type Ledger, UNIFORM } from './memory.ts'

/** One uniform buffer for the step values of all runs, bound once with a dynamic offset. */
export interface StepRing {
  readonly group: GPUBindGroup
  /** Writes the values of a run and returns their offset. */
  write(counts: Counts): number
}

const ENTRY = 256 // minUniformBufferOffsetAlignment of the default limits
const ENTRIES = 256

export function stepRing(gpu: GPUDevice, memory: Ledger, layout: GPUBindGroupLayout): StepRing {
  const { result: buffer } = memory.create('step', ENTRY * ENTRIES, UNIFORM | COPY_DST)
  let next = 0
  return {
    group: gpu.createBindGroup({ label: 'step', layout, entries: [{ binding: 0, resource: { buffer, size: 16 } }] }),
    write({ T, S, C, R }) {
      const offset = (next++ % ENTRIES) * ENTRY
      gpu.queue.writeBuffer(buffer, offset, Uint32Array.of(T, S, C, R))
      return offset
    },
  }
}
