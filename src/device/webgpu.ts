import { DeviceError, ShapeError } from '../errors.ts'
import type { Precision, Target } from '../graph/target.ts'
import { bytes, type Counts, rowBytes, type Tensor, tensor } from '../graph/tensor.ts'
import type { Device } from './device.ts'
import { describe } from './report.ts'
import { serial } from './serial.ts'
import { type Faults, faults } from './webgpu_faults.ts'
import {
  COPY_DST,
  COPY_SRC,
  type Ledger,
  ledger,
  type Readback,
  readback,
  type SlotPool,
  STORAGE,
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
  stored(t: Tensor): Stored
  /** Counts the kept buffers that were replaced. */
  generation(): number
  download(buffer: GPUBuffer, bytes: number): Promise<Uint8Array>
}

interface Stored {
  readonly buffer: GPUBuffer
  readonly rows: number
}

export interface WebgpuOptions {
  readonly name: string
  readonly why: string
  readonly target: Target
  readonly precision: Precision
  /** Destroyed with the device, unless it is the caller's. */
  readonly owned: boolean
}

/** Runs graphs on any GPUDevice: a browser's, Deno's, or Dawn's in Node. */
export function webgpuDevice(gpu: GPUDevice, options: WebgpuOptions): Device {
  const memory = ledger(gpu)
  const kept = new Map<number, Stored>()
  const watch = faults(gpu)
  const queue = serial()
  const back = readback(memory)
  const shaders = pipelines(gpu)
  const { limits } = options.target
  let target = options.target
  let generation = 0
  let disposing: Promise<void> | undefined

  const stored = (t: Tensor): Stored => {
    const found = kept.get(t.id)
    if (!found) throw new ShapeError(`webgpu: ${t.label} is not kept on this device`)
    return found
  }
  const allocate = (t: Tensor, rows: number): Stored => {
    const size = bytes(t, none, rows)
    const most = Math.min(limits.bindingBytes, limits.bufferBytes)
    if (size > most)
      throw new DeviceError('limit', `keep: ${t.label} has ${size} bytes, this device binds at most ${most}`)
    const make = () => memory.create(t.label, size, STORAGE | COPY_SRC | COPY_DST)
    return { buffer: watch.watch(`keep ${t.label}`, make), rows }
  }
  const download = async (buffer: GPUBuffer, size: number): Promise<Uint8Array> => {
    const staging = back.take(size)
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
    stored,
    generation: () => generation,
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
      const keptBytes = [...kept.values()].reduce((n, s) => n + s.buffer.size, 0)
      return { keptBytes, slotBytes: parts.slots.bytes, buffers: memory.buffers, pipelines: shaders.count }
    },
    lost: watch.lost,

    keep(label, shape, format, rows = 1) {
      const t = tensor({ label, shape, format, place: 'kept' })
      kept.set(t.id, allocate(t, rows))
      return t
    },
    grow(pool, rows) {
      const old = stored(pool)
      if (old.rows >= rows) return
      const grown = allocate(pool, rows)
      const encoder = gpu.createCommandEncoder()
      encoder.copyBufferToBuffer(old.buffer, 0, grown.buffer, 0, old.rows * rowBytes(pool))
      gpu.queue.submit([encoder.finish()])
      memory.destroy(old.buffer)
      kept.set(pool.id, grown)
      generation++
    },
    write(t, data, byteOffset = 0) {
      gpu.queue.writeBuffer(stored(t).buffer, byteOffset, data.buffer as ArrayBuffer, data.byteOffset, data.byteLength)
    },
    read: (t) => queue(() => download(stored(t).buffer, bytes(t, none, stored(t).rows))),
    async flush() {
      await watch.check()
      gpu.queue.submit([])
      await watch.during(gpu.queue.onSubmittedWorkDone())
    },
    release(t) {
      const found = kept.get(t.id)
      if (!found) return
      memory.destroy(found.buffer)
      kept.delete(t.id)
    },
    compile: (graph) => webgpuProgram(parts, graph),
    disable(variant, reason) {
      target = { ...target, disabled: new Map([...target.disabled, [variant, reason]]) }
    },
    dispose() {
      disposing ??= queue(async () => {
        watch.close()
        memory.destroyAll()
        kept.clear()
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
  const buffer = memory.create('step', ENTRY * ENTRIES, UNIFORM | COPY_DST)
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
