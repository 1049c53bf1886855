import { type Device, type DeviceChoice, openDevice, type Profile } from '../../src/index.ts'

/** What the page says about a device. */
export interface DeviceInfo {
  readonly choice: DeviceChoice
  readonly kind: Device['kind']
  readonly name: string
  readonly adapter: string
  /** Of the GPU, as the browser calls it; '' where it hides it. */
  readonly architecture: string
  readonly software: boolean
  readonly dtype: string
  readonly f16: boolean
  readonly subgroups: boolean
  readonly subgroupMatrix: boolean
  readonly features: readonly string[]
  readonly disabled: readonly { readonly variant: string; readonly reason: string }[]
  readonly tuned: string | undefined
  readonly why: string
  readonly line: string
}

export interface Opened {
  readonly device: Device
  readonly info: DeviceInfo
}

export async function open(choice: DeviceChoice): Promise<Opened> {
  const device = await openDevice(choice)
  const { features, ...report } = device.report
  const has = (feature: string): boolean => features.includes(feature)
  return {
    device,
    info: {
      ...{ choice, features, kind: report.kind, name: report.name, adapter: report.adapter, why: report.why },
      ...{ software: report.software, dtype: report.dtype, disabled: report.disabled, tuned: report.tuned },
      ...{ line: report.line, f16: has('shader-f16'), subgroups: has('subgroups') },
      subgroupMatrix: device.target.matrix !== undefined,
      architecture: device.kind === 'cpu' ? '' : await architecture(),
    },
  }
}

async function architecture(): Promise<string> {
  const adapter = await navigator.gpu.requestAdapter({ powerPreference: 'high-performance' })
  return adapter?.info.architecture ?? ''
}

type Program = Awaited<ReturnType<Device['compile']>>

/** What ran on a device since `begin`. */
export interface Watch {
  readonly device: Device
  begin(): void
  dispatches(): number
  /** Runs are profiled while it is set. */
  onProfile: ((profile: Profile) => void) | undefined
}

/** The device, which counts the dispatches of its runs; recorded for a target without some kernel variants. */
export function watched(device: Device, without: readonly string[] = []): Watch {
  let count = 0
  let { target } = device
  const off = (variants: readonly string[], reason: string): void => {
    target = { ...target, disabled: new Map([...target.disabled, ...variants.map((v) => [v, reason] as const)]) }
  }
  off(without, 'the benchmark goes without')
  const compile: Device['compile'] = async (graph) => {
    const program = await device.compile(graph)
    const run: Program['run'] = (inputs, counts, options) => {
      count += program.dispatches(counts)
      return program.run(inputs, counts, watch.onProfile ? { ...options, onProfile: watch.onProfile } : options)
    }
    return Object.create(program, { run: { value: run } })
  }
  const watch: Watch = {
    device: Object.create(device, {
      target: { get: () => target },
      disable: { value: (variant: string, reason: string) => off([variant], reason) },
      compile: { value: compile },
    }),
    begin() {
      count = 0
    },
    dispatches: () => count,
    onProfile: undefined,
  }
  return watch
}
