/** How numbers are held: 'auto' uses what the device is good at, 'f32' forces f32 everywhere, weights as stored. */
export type Precision = 'auto' | 'f32'

/**
 * What a graph is recorded for, as plain data: an op looks here, and nowhere else, to pick its variant.
 */
export interface Target {
  readonly kind: 'webgpu' | 'cpu'
  /** Software adapters compile barriers slowly, so ops pick barrier-free variants there. */
  readonly software: boolean
  readonly features: ReadonlySet<string>
  readonly limits: Limits
  /** Operands of matrix products: outputs of norms, activations and attention. */
  readonly operand: 'f32' | 'f16'
  /** Keys and values between runs. */
  readonly cache: 'f32' | 'f16'
  /** Variants that failed their probe or a run, by kernel name, with the reason. */
  readonly disabled: ReadonlyMap<string, string>
  /** The fragment of the matrix units: f16 operands [M, K] and [K, N], f32 sums [M, N]. Left out where there are none. */
  readonly matrix?: { readonly M: number; readonly N: number; readonly K: number }
  /** Invocations of a subgroup, where the device has one size only. */
  readonly subgroupSize?: number
  /** Plans measured on this device; each goes before a plan of the built-in table for a product as near. */
  readonly tuning?: readonly LinearRule[]
}

/** How a matrix product is computed, as data. Tiles are constants of the variant's shader. */
export interface LinearPlan {
  readonly variant: 'linear' | 'linear_dot' | 'linear_few' | 'linear_tiled' | 'linear_matrix'
  /**
   * All that the order of a sum depends on: K is cut into SK parts, of which a workgroup takes BK terms at once, and
   * parts are added as src/kernels/lib/parts.ts says. Where BK changes no bit, a tile may have its own; and it may have
   * SL, how many of the parts a workgroup sums and adds.
   */
  readonly order: { readonly SK: number; readonly BK: number; readonly [constant: string]: number }
  /** By the rows of a run, ascending: each tile serves up to so many rows, the last one all that are more. */
  readonly heights: readonly { readonly upTo?: number; readonly tile: Readonly<Record<string, number>> }[]
}

/** The plan for a weight of N rows and K columns, and for the sizes nearest to it. */
export interface LinearRule extends LinearPlan {
  /** Matrix units, f16 operands without them, or f32. */
  readonly on: 'matrix' | 'f16' | 'f32'
  readonly N: number
  readonly K: number
}

export interface Limits {
  readonly bindingBytes: number // maxStorageBufferBindingSize
  readonly bufferBytes: number // maxBufferSize
  readonly workgroupBytes: number // maxComputeWorkgroupStorageSize
  readonly invocations: number // maxComputeInvocationsPerWorkgroup
  readonly workgroups: number // maxComputeWorkgroupsPerDimension
}

/** The limits that every WebGPU device grants; what a kernel must live with where nothing more is there. */
export const defaultLimits: Limits = {
  bindingBytes: 128 * 2 ** 20,
  bufferBytes: 256 * 2 ** 20,
  workgroupBytes: 16 * 2 ** 10,
  invocations: 256,
  workgroups: 65535,
}
