import { defaultLimits, type Limits, type Precision, type Target } from '../graph/target.ts'

/** The adapter of this host, or what is missing. */
export async function findAdapter(): Promise<{ adapter: GPUAdapter } | { missing: string }> {
  if (!globalThis.navigator?.gpu) dawn ??= loadDawn()
  const gpu = globalThis.navigator?.gpu ?? (await dawn!)
  if (typeof gpu === 'string') return { missing: gpu }
  try {
    const adapter = await gpu.requestAdapter({ powerPreference: 'high-performance' })
    return adapter ? { adapter } : { missing: 'the driver offers no adapter' }
  } catch (error) {
    return { missing: `the driver fails: ${(error as Error).message}` }
  }
}

let dawn: Promise<GPU | string> | undefined // Dawn crashes once its GPU is collected, so it lives as long as the process

/**
 * Off in Dawn by default, on here in Node: f16 on NVIDIA, and unsafe APIs for the matrix units, which are experimental.
 * Kernels that use them are proven before anybody relies on them, and robust buffer access stays on. Timestamps are
 * not rounded to 65 us, so that a profile tells kernels apart. A browser decides for itself.
 */
const dawnFeatures = 'allow_unsafe_apis,vulkan_enable_f16_on_nvidia'

/** Node has no WebGPU of its own; the optional package `webgpu` brings Dawn. A string says what is missing. */
async function loadDawn(): Promise<GPU | string> {
  if (!globalThis.process?.versions?.node) return 'this browser has no WebGPU'
  try {
    const { create, globals } = await import('webgpu')
    Object.assign(globalThis, globals)
    return create([`enable-dawn-features=${dawnFeatures}`, 'disable-dawn-features=timestamp_quantization'])
  } catch (error) {
    return `the package webgpu does not load (npm i webgpu): ${(error as Error).message.split('\n')[0]}`
  }
}

/** What an adapter is asked for, where it has it. */
export function featuresOf(adapter: GPUAdapter): GPUFeatureName[] {
  return wanted.filter((feature) => adapter.features.has(feature) && (feature !== MATRIX || dawn !== undefined))
}
const MATRIX = 'chromium-experimental-subgroup-matrix' as GPUFeatureName
const wanted: readonly GPUFeatureName[] = ['shader-f16', 'subgroups', 'timestamp-query', MATRIX]

/** Limits that are raised to the adapter's own, and their names in a target. */
export const limitNames = {
  maxStorageBufferBindingSize: 'bindingBytes',
  maxBufferSize: 'bufferBytes',
  maxComputeWorkgroupStorageSize: 'workgroupBytes',
  maxComputeInvocationsPerWorkgroup: 'invocations',
  maxComputeWorkgroupSizeX: undefined,
  maxComputeWorkgroupsPerDimension: 'workgroups',
} as const satisfies Record<string, keyof Limits | undefined>

/** What graphs are recorded for on this GPUDevice. */
export function targetOf(gpu: GPUDevice, info: GPUAdapterInfo, precision: Precision): Target {
  const limits = { ...defaultLimits } as { -readonly [K in keyof Limits]: number }
  for (const [name, key] of Object.entries(limitNames)) {
    if (key) limits[key] = gpu.limits[name as keyof typeof limitNames]
  }
  const half = precision === 'auto' && gpu.features.has('shader-f16') ? 'f16' : 'f32'
  const matrix = gpu.features.has(MATRIX) ? matrixOf(info) : undefined
  const { subgroupMinSize, subgroupMaxSize } = info
  const fixed = gpu.features.has('subgroups') && subgroupMinSize === subgroupMaxSize
  return {
    kind: 'webgpu',
    software: isSoftware(info),
    features: new Set(gpu.features),
    limits,
    operand: half,
    cache: half,
    disabled: new Map(),
    ...(matrix && { matrix }),
    ...(fixed && { subgroupSize: subgroupMinSize }),
  }
}

/** Dawn lists its matrix units here; the types do not know of them yet. */
interface MatrixConfig {
  readonly componentType: string
  readonly resultComponentType: string
  readonly M: number
  readonly N: number
  readonly K: number
}

/** The largest fragment with f16 operands and f32 sums. */
function matrixOf(info: GPUAdapterInfo): Target['matrix'] {
  const { subgroupMatrixConfigs = [] } = info as { subgroupMatrixConfigs?: Iterable<MatrixConfig> }
  const [best] = [...subgroupMatrixConfigs]
    .filter((c) => c.componentType === 'f16' && c.resultComponentType === 'f32')
    .sort((a, b) => b.M * b.N * b.K - a.M * a.N * a.K)
  return best && { M: best.M, N: best.N, K: best.K }
}

export const isSoftware = (info: GPUAdapterInfo): boolean =>
  info.isFallbackAdapter ||
  /swiftshader|llvmpipe|lavapipe|softpipe/i.test(`${info.architecture} ${info.device} ${info.description}`)

/** Deno gives PCI ids where others give names. */
const vendors: Readonly<Record<string, string>> = {
  4098: 'amd',
  4203: 'apple',
  4318: 'nvidia',
  32902: 'intel',
  65541: 'mesa',
}
export const vendorOf = (info: GPUAdapterInfo): string => vendors[info.vendor] ?? info.vendor

export const nameOf = (info: GPUAdapterInfo): string =>
  [vendorOf(info), info.architecture, info.description].filter(Boolean).join(' ') || 'an adapter that hides its name'

/** Tells two GPUs of one maker apart where the host does; `nameOf` is for people. */
export const keyOf = (info: GPUAdapterInfo): string =>
  [vendorOf(info), info.architecture, info.device, info.description].filter(Boolean).join(' ') || nameOf(info)
