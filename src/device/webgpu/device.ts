import type { Precision, Target } from '../../graph/target.ts'
import { bytes, type Counts, tensor } from '../../graph/tensor.ts'
import type { Device } from '../device.ts'
import { describe } from '../report.ts'
import { serial } from '../serial.ts'
import { faults } from './faults.ts'
import { keptTensors } from './kept.ts'
import { ledger, readback, slotPool } from './memory.ts'
import { pace } from './pace.ts'
import type { Parts } from './parts.ts'
import { pipelines } from './pipelines.ts'
import { webgpuProgram } from './program.ts'
import { stepRing } from './step_ring.ts'
import { uploads } from './uploads.ts'

export interface WebgpuOptions {
  readonly name: string
  /** The key of what is kept for this adapter, and the day when its plans were measured. */
  readonly adapter: string
  readonly tuned?: string | undefined
  readonly why: string
  readonly target: Target
  readonly precision: Precision
  /** Destroyed with the device, unless it is the caller's. */
  readonly owned: boolean
  readonly reopen: () => Promise<Device>
  readonly onWarning: (message: string) => void
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
    uploads: uploads(gpu, memory),
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
      if (target.disabled.has(variant)) return
      options.onWarning(`${variant} is switched off: ${reason}; its plain sibling does the work`)
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
