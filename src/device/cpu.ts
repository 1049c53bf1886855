import { DeviceError, ShapeError } from '../errors.ts'
import { type Graph, isIdle, type Step } from '../graph/graph.ts'
import type { View } from '../graph/kernel.ts'
import { defaultLimits, type Precision, type Target } from '../graph/target.ts'
import { bytes, type Counts, elements, type Format, rowSize, type Tensor, tensor } from '../graph/tensor.ts'
import type { Device, Inputs, Profile, Program, RunOptions, Traced } from './device.ts'
import { filled } from './fill.ts'
import { decode, encode } from './formats.ts'
import { describe } from './report.ts'
import { serial } from './serial.ts'

/** Runs every kernel's TypeScript twin: the reference, and the way to work without a GPU. */
export function cpuDevice(
  why: string,
  precision: Precision = 'auto',
  reopen: () => Promise<Device> = async () => cpuDevice(why, precision),
): Device {
  const kept = new Map<number, View>()
  const packed = new Map<number, Uint8Array>() // q8: written in pieces, decoded as a whole
  const queue = serial()
  let disposed = false

  const check = (): void => {
    if (disposed) throw new DeviceError('disposed', 'cpu: the device was disposed of; open another')
  }
  const stored = (t: Tensor): View => {
    check()
    const raw = packed.get(t.id)
    if (raw && !kept.has(t.id)) kept.set(t.id, decode(raw, 'q8'))
    const view = kept.get(t.id)
    if (!view) throw new ShapeError(`cpu: ${t.label} is not kept on this device`)
    return view
  }

  const device: Device = {
    kind: 'cpu',
    target: cpuTarget,
    get report() {
      return describe(cpuTarget, { name: 'CPU, TypeScript reference kernels', why, precision })
    },
    get memory() {
      const keptBytes = [...kept.values(), ...packed.values()].reduce((n, v) => n + v.byteLength, 0)
      return { keptBytes, slotBytes: 0, buffers: new Set([...kept.keys(), ...packed.keys()]).size, pipelines: 0 }
    },
    lost: new Promise(() => {}),
    reopen,

    keep(label, shape, format, rows = 1) {
      check()
      const t = tensor({ label, shape, format, place: 'kept' })
      if (format === 'q8') packed.set(t.id, new Uint8Array(bytes(t, none)))
      else kept.set(t.id, allocate(label, format, elements(t, none, rows)))
      return t
    },
    grow(pool, rows) {
      const old = stored(pool)
      if (old.length >= rows * rowSize(pool)) return
      const grown = allocate(pool.label, pool.format, rows * rowSize(pool))
      grown.set(old)
      kept.set(pool.id, grown)
    },
    write(t, data, byteOffset = 0) {
      check()
      const raw = packed.get(t.id)
      if (raw) {
        raw.set(data.subarray(0, raw.length - byteOffset), byteOffset)
        kept.delete(t.id)
        return
      }
      const values = decode(data, t.format)
      const at = (byteOffset * values.length) / data.byteLength
      const view = stored(t)
      view.set(values.subarray(0, view.length - at), at) // the last write of a tensor may be padded
    },
    read: async (t) => packed.get(t.id)?.slice() ?? encode(stored(t), t.format),
    flush: async () => check(),
    release(t) {
      kept.delete(t.id)
      packed.delete(t.id)
    },
    disable() {}, // a twin has no variants
    async compile(graph) {
      check()
      return cpuProgram(graph, stored, check, queue)
    },
    async dispose() {
      disposed = true // what is pending rejects
      await queue(async () => [kept, packed].forEach((tensors) => tensors.clear()))
    },
    [Symbol.asyncDispose]: () => device.dispose(),
  }
  return device
}

const none: Counts = { T: 0, S: 0, C: 0, R: 0 }

export const cpuTarget: Target = {
  kind: 'cpu',
  software: true,
  features: new Set(),
  limits: { ...defaultLimits, bindingBytes: 2 ** 32, bufferBytes: 2 ** 32 },
  operand: 'f32',
  cache: 'f32',
  disabled: new Map(),
}

function allocate(label: string, format: Format, n: number): View {
  try {
    return format === 'u32' ? new Uint32Array(n) : new Float32Array(n)
  } catch (cause) {
    const message = `allocate ${label}, ${4 * n} bytes: this process has not enough memory: ${(cause as Error).message}`
    throw new DeviceError('memory', `${message}; use a smaller model or fewer tokens`, { cause })
  }
}

function cpuProgram(
  graph: Graph,
  stored: (t: Tensor) => View,
  checkDevice: () => void,
  queue: ReturnType<typeof serial>,
): Program {
  let disposed = false
  const check = (): void => {
    checkDevice()
    if (disposed) throw new DeviceError('disposed', 'run: the program was disposed of')
  }
  const lastUse = new Map<number, Step>()
  for (const step of graph.steps) for (const t of Object.values(step.bindings)) lastUse.set(t.id, step)
  const outputs = new Set([...graph.outputs.values()].map((t) => t.id))

  /**
   * Runs the steps in order; `after` sees each one's views before dead values are let go. Aborts and disposal are heard
   * between two steps, so the longest single step bounds the wait: a large product over 4096 tokens takes seconds.
   */
  async function execute(
    inputs: Inputs,
    counts: Counts,
    signal: AbortSignal | undefined,
    after: (step: Step, views: Record<string, View>, ms: number) => void,
  ): Promise<Map<number, View>> {
    check()
    const values = new Map<number, View>()
    for (const [name, t] of graph.inputs) values.set(t.id, inputView(name, t, inputs[name], counts))
    const view = (t: Tensor): View => {
      if (t.place === 'kept') return stored(t)
      const v = values.get(t.id) ?? allocate(t.label, t.format, elements(t, counts))
      values.set(t.id, v)
      return v
    }
    let rested = performance.now()
    for (const step of graph.steps) {
      check()
      signal?.throwIfAborted()
      if (!isIdle(step, counts)) {
        const views = Object.fromEntries(Object.entries(step.bindings).map(([name, t]) => [name, view(t)]))
        const start = performance.now()
        step.kernel.cpu(views, step.constants, counts)
        after(step, views, performance.now() - start)
      }
      for (const t of Object.values(step.bindings))
        if (lastUse.get(t.id) === step && !outputs.has(t.id)) values.delete(t.id)
      if (performance.now() - rested > 16) {
        await new Promise((resolve) => setTimeout(resolve)) // lets pages paint and aborts arrive
        rested = performance.now()
      }
    }
    return values
  }

  return {
    maxTokens: MAX_TOKENS,
    dispatches: (counts) => graph.steps.filter((step) => !isIdle(step, counts)).length,
    run: (inputs, counts, options: RunOptions = {}) =>
      queue(async () => {
        const dispatches: Profile['dispatches'][number][] = []
        const start = performance.now()
        const values = await execute(inputs, counts, options.signal, ({ kernel, bindings, constants }, _views, ms) => {
          if (!options.onProfile) return
          const made = bindings[kernel.writes[0]!]!
          dispatches.push({ kernel: kernel.name, name: graph.nameOf(made), ms, ...kernel.cost(constants, counts) })
        })
        const spanMs = dispatches.reduce((sum, { ms }) => sum + ms, 0)
        options.onProfile?.({ dispatches, submits: 0, encodeMs: 0, spanMs, totalMs: performance.now() - start })
        if (options.read === false) return {}
        return Object.fromEntries([...graph.outputs].map(([name, t]) => [name, values.get(t.id) as Float32Array]))
      }, options.signal),
    trace: (inputs, counts) =>
      queue(async () => {
        const traced: Traced[] = []
        await execute(inputs, counts, undefined, (step, views) => {
          for (const name of step.kernel.writes) {
            const t = step.bindings[name]!
            const data = views[name]!.slice()
            const shape = [data.length / rowSize(t), ...(t.shape.slice(1) as number[])]
            traced.push({ kernel: step.kernel.name, name: graph.nameOf(t), shape, data })
          }
        })
        return traced
      }),
    dispose() {
      disposed = true
    },
  }
}

const MAX_TOKENS = 4096

/** Checks an input against its declaration and gives it as the twin wants it. */
function inputView(name: string, t: Tensor, data: Inputs[string] | undefined, counts: Counts): View {
  if (!data) throw new ShapeError(`run: input ${name} is missing`)
  const room = bytes(t, counts)
  if (!ArrayBuffer.isView(data) && data.byteLength > room)
    throw new ShapeError(`run: input ${name} has ${data.byteLength} bytes, expected ${room}`)
  const given = ArrayBuffer.isView(data) ? data : filled(data, room)
  const view = given instanceof Uint8Array ? decode(given, t.format) : given
  const expected = elements(t, counts)
  if (view.length < expected)
    throw new ShapeError(`run: input ${name} has ${view.length} elements, expected ${expected}`)
  return view.subarray(0, expected)
}
