import { join } from 'node:path'
import { type Command, InvalidArgumentError, Option } from 'commander'
import {
  type Decider,
  type Device,
  type DeviceChoice,
  deviceChoices,
  loadDecider,
  openDevice,
  type Precision,
  type Progress,
} from '../index.ts'
import { addCacheFlags, type CacheFlags, openModel } from './model.ts'

/** What a command has from the program. */
export interface Host {
  readonly root: string // of the package
  readonly version: string
  readonly signal: AbortSignal
  readonly clear: string // ends the line of progress
  readonly note: (line: string) => void
}

/** A model that comes with the package. */
export const inside = ({ root }: Host, name: string): string => join(root, 'public/models', name)

export interface DeviceFlags {
  readonly device: DeviceChoice
  readonly precision: Precision
}

export interface ModelFlags extends DeviceFlags, CacheFlags {
  readonly model?: string
}

const PRECISIONS: readonly Precision[] = ['auto', 'f32']

export const addDeviceOptions = (command: Command, choices: readonly DeviceChoice[] = deviceChoices): Command =>
  command
    .addOption(new Option('-d, --device <kind>', 'where to run').choices(choices).default(choices[0]))
    .addOption(new Option('-p, --precision <kind>', 'f32: no half precision').choices(PRECISIONS).default('auto'))

export const addModelOptions = (command: Command): Command =>
  addCacheFlags(
    addDeviceOptions(
      command.option(
        '-m, --model <where>',
        'a Decider checkpoint: folder, URL or hf:owner/name (default: the small model inside)',
      ),
    ),
  )

/** Opens the device of the flags and says which, for as long as `work` takes. */
export async function withDevice<A>(
  { device: choice, precision }: DeviceFlags,
  { note }: Host,
  work: (device: Device) => Promise<A>,
): Promise<A> {
  const device = await openDevice(choice, { precision, onWarning: (message) => note(`warning: ${message}`) })
  try {
    note(`device: ${device.report.line}`)
    return await work(device)
  } finally {
    await device.dispose()
  }
}

/** Loads the model of the flags, with progress where somebody sees it, for as long as `work` takes. */
export const withDecider = <A>(flags: ModelFlags, host: Host, work: (decider: Decider) => Promise<A>): Promise<A> =>
  withDevice(flags, host, async (device) => {
    const decider = await loadDecider(openModel(flags.model ?? inside(host, 'decider-nano'), flags, liveLine(host)), {
      device,
      signal: host.signal,
      onProgress: process.stderr.isTTY ? showLoading(host) : undefined,
    })
    try {
      process.stderr.write(host.clear)
      return await work(decider)
    } finally {
      await decider.dispose()
    }
  })

/** Writes over the line of progress, where somebody sees it. */
export const liveLine = ({ clear }: Host): ((line: string) => void) | undefined =>
  process.stderr.isTTY ? (line) => void process.stderr.write(`${clear}${line}`) : undefined

export const showLoading =
  ({ clear }: Host) =>
  ({ loadedBytes, totalBytes }: Progress): void =>
    void process.stderr.write(`${clear}loading ${Math.round((100 * loadedBytes) / totalBytes)} %`)

/** Reads the value of a flag. */
export const integer =
  (least: number, most: number = Number.MAX_SAFE_INTEGER) =>
  (text: string): number => {
    const value = Number(text)
    if (text.trim() !== '' && Number.isInteger(value) && value >= least && value <= most) return value
    const bound = most < Number.MAX_SAFE_INTEGER ? ` to ${most}` : ''
    throw new InvalidArgumentError(`Not an integer from ${least}${bound}.`)
  }

export const positive = (text: string): number => {
  const value = Number(text)
  if (Number.isFinite(value) && value > 0) return value
  throw new InvalidArgumentError('Not a number above 0.')
}

/** Of an option that may be given several times. */
export const collect = (value: string, before: readonly string[] = []): readonly string[] => [...before, value]
