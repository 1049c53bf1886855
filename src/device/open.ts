import { DeviceError } from '../errors.ts'
import { defaultLimits, type Limits, type Precision, type Target } from '../graph/target.ts'
import { cpuDevice } from './cpu.ts'
import type { Device } from './device.ts'
import { type WebgpuOptions, webgpuDevice } from './webgpu/device.ts'

export type DeviceChoice = 'auto' | 'webgpu' | 'cuda' | 'metal' | 'cpu'
export const deviceChoices: readonly DeviceChoice[] = ['auto', 'webgpu', 'cuda', 'metal', 'cpu']

export interface OpenOptions {
  /** 'f32' forces f32 everywhere and weights as stored; 'auto' uses f16 operands where the device has them. */
  readonly precision?: Precision | undefined
  /** 'default' asks for no more than WebGPU grants everywhere. */
  readonly limits?: 'adapter' | 'default' | undefined
  /** A GPUDevice of the caller's, with the adapter's info; it is not destroyed on dispose. */
  readonly gpu?: GPUDevice | undefined
}

/**
 * Opens the device that was asked for, or fails and names what was missing. Only 'auto' chooses: a hardware WebGPU
 * adapter, else the CPU, never a software adapter; `device.report.line` says which and why.
 *
 * @throws DeviceError 'unavailable'
 */
export async function openDevice(choice: DeviceChoice, options: OpenOptions = {}): Promise<Device> {
  const { precision = 'auto' } = options
  if (!deviceChoices.includes(choice))
    throw new DeviceError('unavailable', `openDevice: there is no '${choice}', expected ${deviceChoices.join(', ')}`)
  const reopen = () => openDevice(choice, options)
  if (options.gpu) return given(options.gpu, precision)
  if (choice === 'cpu') return cpuDevice('asked for', precision, reopen)
  const found = await findAdapter()
  if (choice === 'auto') {
    if ('missing' in found) return cpuDevice(`no GPU: ${found.missing}`, precision, reopen)
    if (isSoftware(found.adapter.info))
      return cpuDevice(`the only WebGPU adapter is software (${nameOf(found.adapter.info)})`, precision, reopen)
    return request(found.adapter, 'the GPU that was found', options, reopen)
  }
  if ('missing' in found) throw new DeviceError('unavailable', `openDevice: '${choice}' needs WebGPU: ${found.missing}`)
  const { info } = found.adapter
  const vendor = { cuda: 'nvidia', metal: 'apple', webgpu: vendorOf(info) }[choice]
  if (vendorOf(info) !== vendor)
    throw new DeviceError(
      'unavailable',
      `openDevice: '${choice}' needs an adapter of ${vendor}, found ${nameOf(info)}; pass 'webgpu' to use that`,
    )
  return request(found.adapter, 'asked for', options, reopen)
}

function given(gpu: GPUDevice, precision: Precision): Device {
  const reopen = async () => {
    throw new DeviceError(
      'unavailable',
      'reopen: this device was made over a GPUDevice of yours, expected a new one: ' +
        "open it with openDevice('webgpu', { gpu }) and pass it to recover()",
    )
  }
  return wrap(gpu, gpu.adapterInfo, { why: 'the GPUDevice that was given', precision, owned: false, reopen })
}

async function findAdapter(): Promise<{ adapter: GPUAdapter } | { missing: string }> {
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

/** Node has no WebGPU of its own; the optional package `webgpu` brings Dawn. A string says what is missing. */
async function loadDawn(): Promise<GPU | string> {
  if (!globalThis.process?.versions?.node) return 'this browser has no WebGPU'
  try {
    const { create, globals } = await import('webgpu')
    Object.assign(globalThis, globals)
    return create(['enable-dawn-features=vulkan_enable_f16_on_nvidia'])
  } catch (error) {
    return `the package webgpu does not load (npm i webgpu): ${(error as Error).message.split('\n')[0]}`
  }
}

const wanted: readonly GPUFeatureName[] = ['shader-f16', 'subgroups', 'timestamp-query']

async function request(
  adapter: GPUAdapter,
  why: string,
  options: OpenOptions,
  reopen: () => Promise<Device>,
): Promise<Device> {
  const { limits = 'adapter', precision = 'auto' } = options
  const requiredFeatures = wanted.filter((f) => adapter.features.has(f))
  const raise = limits === 'adapter' ? (Object.keys(limitNames) as (keyof typeof limitNames)[]) : []
  const requiredLimits = Object.fromEntries(raise.map((name) => [name, adapter.limits[name]]))
  try {
    const gpu = await adapter.requestDevice({ label: 'pronounce', requiredFeatures, requiredLimits })
    return wrap(gpu, adapter.info, { why, precision, owned: true, reopen })
  } catch (cause) {
    throw new DeviceError(
      'unavailable',
      `openDevice: ${nameOf(adapter.info)} gives no device: ${(cause as Error).message}`,
      { cause },
    )
  }
}

const limitNames = {
  maxStorageBufferBindingSize: 'bindingBytes',
  maxBufferSize: 'bufferBytes',
  maxComputeWorkgroupStorageSize: 'workgroupBytes',
  maxComputeInvocationsPerWorkgroup: 'invocations',
  maxComputeWorkgroupSizeX: undefined,
  maxComputeWorkgroupsPerDimension: 'workgroups',
} as const satisfies Record<string, keyof Limits | undefined>

type About = Omit<WebgpuOptions, 'name' | 'target'>

function wrap(gpu: GPUDevice, info: GPUAdapterInfo, about: About): Device {
  const limits = { ...defaultLimits } as { -readonly [K in keyof Limits]: number }
  for (const [name, key] of Object.entries(limitNames)) {
    if (key) limits[key] = gpu.limits[name as keyof typeof limitNames]
  }
  const half = about.precision === 'auto' && gpu.features.has('shader-f16') ? 'f16' : 'f32'
  const target: Target = {
    kind: 'webgpu',
    software: isSoftware(info),
    features: new Set(gpu.features),
    limits,
    operand: half,
    cache: half,
    disabled: new Map(),
  }
  return webgpuDevice(gpu, { ...about, name: nameOf(info), target })
}

const isSoftware = (info: GPUAdapterInfo): boolean =>
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
const vendorOf = (info: GPUAdapterInfo): string => vendors[info.vendor] ?? info.vendor

const nameOf = (info: GPUAdapterInfo): string =>
  [vendorOf(info), info.architecture, info.description].filter(Boolean).join(' ') || 'an adapter that hides its name'
