import { expect } from 'vitest'
import { decode, encode } from '../src/device/formats.ts'
import { cpuDevice } from '../src/device/cpu.ts'
import type { Device } from '../src/device/device.ts'
import { openDevice } from '../src/device/open.ts'
import { Graph } from '../src/graph/graph.ts'
import type { View } from '../src/graph/kernel.ts'
import type { Target } from '../src/graph/target.ts'
import { type Counts, elements, type Format, type Shape, type Tensor } from '../src/graph/tensor.ts'

let opened: Promise<Device> | undefined
/**
 * The WebGPU device of this test file: lavapipe in CI, a real GPU with PRONOUNCE_GPU=1. Never skipped, and the same
 * on a machine that was tuned.
 */
export const gpu = (): Promise<Device> => (opened ??= openDevice('webgpu', { precision: 'f32', tuning: 'built-in' }))

export const counts = (c: Partial<Counts> = {}): Counts => ({ T: 1, S: 1, C: 1, R: 1, ...c })

/** Repeatable values in [-1, 1). */
export function noise(n: number, seed = 1): Float32Array {
  let s = seed * 2654435761
  return Float32Array.from({ length: n }, () => {
    s = (Math.imul(s ^ (s >>> 15), 0x2c1b3c6d) + 0x9e3779b9) >>> 0
    return s / 2 ** 31 - 1
  })
}

export interface Operand {
  readonly shape: Shape
  readonly format?: Format
  /** Default: noise. Kept tensors and pools are given in full. */
  readonly data?: View
  readonly kept?: boolean
}

export interface Case {
  readonly operands: Readonly<Record<string, Operand>>
  readonly counts?: Partial<Counts>
  /** Calls the op and names what to compare; kept tensors that it changed may be among them. */
  readonly op: (operands: Readonly<Record<string, Tensor>>, graph: Graph) => Readonly<Record<string, Tensor>>
  /** Largest |a - b| <= tolerance * (1 + |a|). */
  readonly tolerance?: number
  /** What ops pick where the case forces nothing: the plain kernels, or what the device's target asks for. */
  readonly pick?: 'plain' | 'target'
  /** The kernels that have to have run on WebGPU, in order. */
  readonly kernels?: readonly string[]
}

export type Results = Readonly<Record<string, Float32Array>>

/** Runs an op on one device. */
export async function runOn(device: Device, { operands, op, counts: c, pick }: Case): Promise<Results> {
  const graph = new Graph(targetOf(device, pick))
  const n = counts(c)
  const inputs: Record<string, View | Uint8Array> = {}
  const tensors: Record<string, Tensor> = {}
  const kept: Tensor[] = []
  Object.entries(operands).forEach(([name, o], i) => {
    const { shape, format = 'f32' } = o
    if (o.kept) {
      const rows = shape[0] === '*' ? o.data!.length / shape.slice(1).reduce<number>((a, b) => a * (b as number), 1) : 1
      const t = device.keep(name, shape, format, rows)
      const data = o.data ?? noise(elements(t, n), i + 1)
      device.write(t, encode(data, format))
      tensors[name] = t
      kept.push(t)
    } else {
      tensors[name] = graph.input(name, shape, format)
      const data = o.data ?? noise(elements(tensors[name], n), i + 1)
      inputs[name] = format === 'f32' || format === 'u32' ? data : encode(data, format)
    }
  })
  const results = op(tensors, graph)
  for (const [name, t] of Object.entries(results)) if (t.place !== 'kept') graph.output(name, t)
  const program = await device.compile(graph)
  const read: Record<string, Float32Array> = { ...(await program.run(inputs, n)) }
  for (const [name, t] of Object.entries(results)) {
    if (t.place === 'kept') read[name] = decode(await device.read(t), t.format) as Float32Array
  }
  program.dispose()
  for (const t of kept) device.release(t)
  return read as Results
}

/** Runs an op on the CPU and on the GPU over the same values and compares. Every kernel test is calls of this. */
export async function sameOnEveryDevice(c: Case): Promise<void> {
  const want = await runOn(cpuDevice('test'), c)
  const device = await gpu()
  const got = await runOn(device, c)
  if (c.kernels) expect(kernelsOf(c, device)).toEqual(c.kernels)
  expect(Object.keys(got)).toEqual(Object.keys(want))
  for (const name of Object.keys(want)) expectClose(got[name]!, want[name]!, c.tolerance ?? 1e-5, name)
}

const targetOf = ({ target }: Device, pick: Case['pick'] = 'plain'): Target =>
  pick === 'target' ? target : { ...target, software: true }

function kernelsOf(c: Case, device: Device): string[] {
  const graph = new Graph(targetOf(device, c.pick))
  const tensors = Object.fromEntries(
    Object.entries(c.operands).map(([name, { shape, format = 'f32' }]) => [name, graph.input(name, shape, format)]),
  )
  c.op(tensors, graph)
  return graph.steps.map((s) => s.kernel.name)
}

/** |got - want| <= tolerance * (1 + |want|) everywhere, and there was something to compare. */
export function expectClose(got: View, want: View, tolerance: number, what = 'values'): void {
  expect(want.length, `${what}: nothing to compare`).toBeGreaterThan(0)
  expect(got.length, `${what}: length`).toBe(want.length)
  let worst = 0
  let at = 0
  for (let i = 0; i < want.length; i++) {
    const error = Math.abs(got[i]! - want[i]!) / (1 + Math.abs(want[i]!))
    if (!(error <= worst)) [worst, at] = [Number.isNaN(error) ? Number.POSITIVE_INFINITY : error, i]
  }
  expect(worst, `${what}[${at}]: ${got[at]} against ${want[at]}`).toBeLessThanOrEqual(tolerance)
}

/** The fixtures' rule: |got - want| <= atol + rtol * |want|. */
export function expectWithin(got: View, want: View, atol: number, rtol: number, what = 'values'): void {
  expect(want.length, `${what}: nothing to compare`).toBeGreaterThan(0)
  expect(got.length, `${what}: length`).toBe(want.length)
  const wrong = want.findIndex((w, i) => !(Math.abs(got[i]! - w) <= atol + rtol * Math.abs(w)))
  expect(wrong, `${what}[${wrong}]: ${got[wrong]} against ${want[wrong]}`).toBe(-1)
}

/** |got - want| / |want| as norms, for fixtures that say so. */
export function relativeNorm(got: View, want: View): number {
  let error = 0
  let norm = 0
  for (let i = 0; i < want.length; i++) {
    error += (got[i]! - want[i]!) ** 2
    norm += want[i]! ** 2
  }
  return Math.sqrt(error / norm)
}

export function cosine(a: Float32Array, b: Float32Array): number {
  const dot = (x: Float32Array, y: Float32Array) => x.reduce((sum, v, i) => sum + v * y[i]!, 0)
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b))
}
