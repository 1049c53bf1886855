import type { Precision, Target } from '../graph/target.ts'
import { bytes, type Counts, tensor } from '../graph/tensor.ts'
import type { Device } from './device.ts'
import { describe } from './report.ts'
import { serial } from './serial.ts'
import { type Faults, faults } from './webgpu_faults.ts'
import { type Kept, keptTensors } from './webgpu_kept.ts'
import {
  COPY_DST,
  type Ledger,
  ledger,
  type Readback,
  readback,
  type SlotPool,
  slotPool,
  UNIFORM,
} from './webgpu_memory.ts'
import { type Pipelines, pipelines } from './webgpu_pipelines.ts'
import { type Pace, pace } from './webgpu_profile.ts'
import { webgpuProgram } from './webgpu_program.ts'

/** What programs share. */
export interface Parts {
  readonly gpu: GPUDevice
  readonly memory: Ledger
  readonly slots: SlotPool
  readonly readback: Readback
  readonly pipelines: Pipelines
  readonly faults: Faults
  readonly ring: StepRing
  readonly pace: Pace
  readonly queue: ReturnType<typeof serial>
  readonly kept: Kept
  download(buffer: GPUBuffer, bytes: number): Promise<Uint8Array>
}

export interface WebgpuOptions {
  readonly name: string
  readonly why: string
  readonly target: Target
  readonly precision: Precision
  /** Destroyed with the device, unless it is the caller's. */
  readonly owned: boolean
  readonly reopen: () => Promise<Device>
}

/** Runs graphs on any GPUDevice: a browser's, Deno's, or Dawn's in Node. */
export function webgpuDevice(gpu: GPUDevice, options: WebgpuOptions): Device {
  const watch = faults(gpu)
  const memory = ledger(gpu, watch)
  const kept = keptTensors(gpu, memory, watch, options.target.limits)
  const queue = serial()
  const back = readback(memory)
  const shaders = pipelines(gpu)
  let target = options.target
  let disposing: Promise<void> | undefined

  const download = async (buffer: GPUBuffer, size: number): Promise<Uint8Array> => {
    const staging = await back.take(size)
    const encoder = gpu.createCommandEncoder()
    encoder.copyBufferToBuffer(buffer, 0, staging, 0, Math.ceil(size / 4) * 4)
    gpu.queue.submit([encoder.finish()])
    return new Uint8Array(await watch.during(back.read(staging, size)))
  }

  const parts: Parts = {
    gpu,
    memory,
    slots: slotPool(memory),
    readback: back,
    pipelines: shaders,
    faults: watch,
    ring: stepRing(gpu, memory, shaders.stepLayout),
    pace: pace(target.software),
    queue,
    kept,
    download,
  }

  const device: Device = {
    kind: 'webgpu',
    get target() {
      return target
    },
    get report() {
      return describe(target, options)
    },
    get memory() {
      const { slots } = parts
      return { keptBytes: kept.bytes, slotBytes: slots.bytes, buffers: memory.buffers, pipelines: shaders.count }
    },
    lost: watch.lost,
    reopen: options.reopen,

    keep(label, shape, format, rows = 1) {
      const t = tensor({ label, shape, format, place: 'kept' })
      kept.add(t, rows)
      return t
    },
    grow: kept.grow,
    write: (t, data, byteOffset = 0) => kept.write(t, data, byteOffset),
    read: (t) =>
      queue(async () => {
        await kept.check(new Set([t.id]))
        const { buffer, rows } = kept.get(t)
        return download(buffer, bytes(t, none, rows))
      }),
    async flush() {
      watch.check()
      gpu.queue.submit([])
      await Promise.all([kept.check(), watch.during(gpu.queue.onSubmittedWorkDone())])
    },
    release: kept.release,
    compile: (graph) => webgpuProgram(parts, graph),
    disable(variant, reason) {
      target = { ...target, disabled: new Map([...target.disabled, [variant, reason]]) }
    },
    dispose() {
      watch.close() // what is pending rejects
      disposing ??= queue(async () => {
        memory.destroyAll()
        kept.clear()
        parts.slots.clear()
        if (options.owned) gpu.destroy()
      })
      return disposing
    },
    [Symbol.asyncDispose]: () => device.dispose(),
  }
  return device
}

const none: Counts = { T: 0, S: 0, C: 0, R: 0 }

/** One uniform buffer for the step values of all runs, bound once with a dynamic offset. */
export interface StepRing {
  readonly group: GPUBindGroup
  /** Writes the values of a run and returns their offset. */
  write(counts: Counts): number
}

const ENTRY = 256 // minUniformBufferOffsetAlignment of the default limits
const ENTRIES = 256

function stepRing(gpu: GPUDevice, memory: Ledger, layout: GPUBindGroupLayout): StepRing {
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
