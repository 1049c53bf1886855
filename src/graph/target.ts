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
