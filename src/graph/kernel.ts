import { ShapeError } from '../errors.ts'
import type { Counts, Format, Tensor } from './tensor.ts'

/**
 * One operation on the device: its WGSL and the same maths in TypeScript. Group 0 binds `reads` in order, then
 * `writes`; group 1 binding 0 is the step (shaders/lib/step.wgsl).
 */
export interface Kernel {
  readonly name: string
  readonly reads: readonly string[]
  readonly writes: readonly string[]
  /** Bindings read as vec4<u32> whatever their format, through a shaders/lib/weight_*.wgsl piece. */
  readonly packed?: readonly string[]
  /** WGSL files, joined below the prelude. */
  readonly shader: readonly string[]
  readonly requires?: readonly GPUFeatureName[]
  /** A plain kernel does the same: this one is proven before use and given up when it fails. */
  readonly optional?: boolean
  /** Work of one dispatch: floating-point operations, and bytes that have to move at least. */
  cost(constants: Constants, counts: Counts): Cost
  /** The definition: obvious loops, sums in double. Views are as long as this run needs, by binding name. */
  cpu(views: Views, constants: Constants, counts: Counts): void
}

export interface Cost {
  readonly flops: number
  readonly bytes: number
}

/** f32, f16, bf16 and q8 tensors as floats, u32 tensors as integers. */
export type View = Float32Array | Uint32Array
export type Views = Readonly<Record<string, View>>

/** Of the model and the tile, never of a run: `const`s in the shader, an object in the twin. */
export type Constants = Readonly<Record<string, number>>

export type Workgroups = readonly [x: number, y: number, z: number]

/** Element-wise grids of more workgroups than one dimension takes: see `flat_index` in shaders/lib/step.wgsl. */
export function fold(invocations: number, workgroup: number): Workgroups {
  const groups = Math.ceil(invocations / workgroup)
  const x = Math.min(groups, FOLD)
  return [x, Math.ceil(groups / FOLD), 1]
}
const FOLD = 32768 // the same number stands in shaders/lib/step.wgsl

const wgslType: Record<Exclude<Format, 'bf16' | 'q8'>, string> = { f32: 'f32', f16: 'f16', u32: 'u32' }
const enables: Record<string, string> = {
  'shader-f16': 'f16',
  subgroups: 'subgroups',
  'chromium-experimental-subgroup-matrix': 'chromium_experimental_subgroup_matrix',
}

/** The WGSL of one specialised kernel: what differs on top, what stays below. */
export function specialise(kernel: Kernel, bindings: Readonly<Record<string, Tensor>>, constants: Constants): string {
  const needs = new Set<string>(kernel.requires)
  const aliases = [...kernel.reads, ...kernel.writes].map((name) => {
    const format = bindings[name]!.format
    if (kernel.packed?.includes(name)) return `alias ${name.toUpperCase()} = vec4<u32>;`
    if (format === 'bf16' || format === 'q8')
      throw new ShapeError(`${kernel.name}: ${name} is ${format}, which only a packed binding can read`)
    if (format === 'f16') needs.add('shader-f16')
    return `alias ${name.toUpperCase()} = ${wgslType[format]};`
  })
  const consts = Object.entries(constants).map(([name, value]) => {
    if (!Number.isFinite(value)) throw new ShapeError(`${kernel.name}: constant ${name} is ${value}`)
    return `const ${name} = ${value};` // untyped: fits u32, i32 and f32
  })
  const enable = [...needs].flatMap((feature) => (enables[feature] ? [`enable ${enables[feature]};`] : []))
  return [...enable, ...aliases, ...consts, ...kernel.shader].join('\n')
}
