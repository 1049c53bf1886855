import type { serial } from '../serial.ts'
import type { Faults } from './faults.ts'
import type { Kept } from './kept.ts'
import type { Ledger, Readback, SlotPool } from './memory.ts'
import type { Pace } from './pace.ts'
import type { Pipelines } from './pipelines.ts'
import type { StepRing } from './step_ring.ts'
import type { Uploads } from './uploads.ts'

/** What the programs of a device share. */
export interface Parts {
  readonly gpu: GPUDevice
  readonly memory: Ledger
  readonly slots: SlotPool
  readonly readback: Readback
  readonly uploads: Uploads
  readonly pipelines: Pipelines
  readonly faults: Faults
  readonly ring: StepRing
  readonly pace: Pace
  readonly queue: ReturnType<typeof serial>
  readonly kept: Kept
  download(buffer: GPUBuffer, bytes: number): Promise<Uint8Array>
}
