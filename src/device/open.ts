import { DeviceError } from '../errors.ts'
import type { Precision } from '../graph/target.ts'
import { featuresOf, findAdapter, isSoftware, keyOf, limitNames, nameOf, targetOf, vendorOf } from './adapter.ts'
import { cpuDevice } from './cpu.ts'
import type { Device } from './device.ts'
import { keptTunings } from './tunings.ts'
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
  /** 'built-in' goes by the built-in table of plans alone, whatever `tune` has measured and kept. */
  readonly tuning?: 'kept' | 'built-in' | undefined
  /** Hears once of every kernel variant that is switched off; in Node the default is a process warning. */
  readonly onWarning?: ((message: string) => void) | undefined
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
  if (options.gpu) return given(choice, options.gpu, options)
  if (choice === 'cpu') return cpuDevice('asked for', precision, reopen)
  const found = await findAdapter()
  if (choice === 'auto') {
    if ('missing' in found) return cpuDevice(`no GPU: ${found.missing}`, precision, reopen)
    if (isSoftware(found.adapter.info))
      return cpuDevice(`the only WebGPU adapter is software (${nameOf(found.adapter.info)})`, precision, reopen)
    return request(found.adapter, 'the GPU that was found', options, reopen)
  }
  if ('missing' in found) throw new DeviceError('unavailable', `openDevice: '${choice}' needs WebGPU: ${found.missing}`)
  expectVendor(choice, found.adapter.info)
  return request(found.adapter, 'asked for', options, reopen)
}

function expectVendor(choice: DeviceChoice, info: GPUAdapterInfo): void {
  const vendor = { cuda: 'nvidia', metal: 'apple', cpu: 'no GPU', auto: undefined, webgpu: undefined }[choice]
  if (vendor === undefined || vendorOf(info) === vendor) return
  throw new DeviceError(
    'unavailable',
    `openDevice: '${choice}' needs an adapter of ${vendor}, found ${nameOf(info)}; pass 'webgpu' to use that`,
  )
}

/** A device over the caller's own GPUDevice. */
function given(choice: DeviceChoice, gpu: GPUDevice, options: OpenOptions): Promise<Device> {
  const reopen = async () => {
    throw new DeviceError(
      'unavailable',
      'reopen: this device was made over a GPUDevice of yours, expected a new one: ' +
        "open it with openDevice('webgpu', { gpu }) and pass it to recover()",
    )
  }
  const info = gpu.adapterInfo
  if (!info) throw new DeviceError('unavailable', 'openDevice: gpu has no adapterInfo, expected a GPUDevice')
  expectVendor(choice, info)
  return wrap(gpu, info, options, { why: 'the GPUDevice that was given', owned: false, reopen })
}

async function request(
  adapter: GPUAdapter,
  why: string,
  options: OpenOptions,
  reopen: () => Promise<Device>,
): Promise<Device> {
  const { limits = 'adapter' } = options
  const requiredFeatures = featuresOf(adapter)
  const raise = limits === 'adapter' ? (Object.keys(limitNames) as (keyof typeof limitNames)[]) : []
  const requiredLimits = Object.fromEntries(raise.map((name) => [name, adapter.limits[name]]))
  try {
    const gpu = await adapter.requestDevice({ label: 'pronounce', requiredFeatures, requiredLimits })
    return await wrap(gpu, adapter.info, options, { why, owned: true, reopen })
  } catch (cause) {
    throw new DeviceError(
      'unavailable',
      `openDevice: ${nameOf(adapter.info)} gives no device: ${(cause as Error).message}`,
      { cause },
    )
  }
}

async function wrap(
  gpu: GPUDevice,
  info: GPUAdapterInfo,
  { precision = 'auto', onWarning = warn, tuning = 'kept' }: OpenOptions,
  about: Pick<WebgpuOptions, 'why' | 'owned' | 'reopen'>,
): Promise<Device> {
  const adapter = keyOf(info)
  const kept = tuning === 'kept' ? await keptTunings({ onWarning }).of(adapter) : undefined
  const target = { ...targetOf(gpu, info, precision), ...(kept && { tuning: kept.rules }) }
  return webgpuDevice(gpu, { ...about, name: nameOf(info), adapter, tuned: kept?.date, target, precision, onWarning })
}

const warn = (message: string): void => globalThis.process?.emitWarning?.(message)
