import { type Command, InvalidArgumentError, Option } from 'commander'
import { printParity } from '../apps/parity/print.ts'
import { type Device, DeviceError, type DeviceChoice, openDevice, speechParity } from '../index.ts'
import { type Host, inside, liveLine } from './host.ts'
import { addCacheFlags, type CacheFlags, openModel } from './model.ts'
import { CODEC } from './say.ts'

interface ParityFlags extends CacheFlags {
  readonly model?: string
  readonly codec?: string
  readonly device: DeviceChoice
  readonly frames?: number
  readonly json?: true
}

/** `pronounce parity`: how near a GPU in f32, and in f16 where it has that, is to the CPU. Fails where it is not. */
async function parity(flags: ParityFlags, host: Host): Promise<void> {
  const { signal, clear, note } = host
  const { model, codec, device: choice, frames, json } = flags
  const live = liveLine(host)
  const onWarning = (message: string) => note(`warning: ${message}`)
  const open = async (choice: DeviceChoice, precision: 'auto' | 'f32'): Promise<Device> => {
    const device = await openDevice(choice, { precision, onWarning })
    opened.push(device)
    return device
  }
  const opened: Device[] = []
  try {
    const devices = [await open(choice, 'f32')]
    const auto = await open(choice, 'auto')
    if (auto.target.operand === 'f16') devices.push(auto)
    else note(`note: ${auto.report.name} has no f16, which is left out`)
    const result = await speechParity(await open('cpu', 'f32'), devices, {
      model: openModel(model ?? inside(host, 'zonos-nano'), flags, live),
      codec: openModel(codec ?? (model === undefined ? inside(host, 'dac-nano') : CODEC), flags, live),
      ...{ frames, signal },
      onStep: live && ((step) => live(`parity: ${step}`)),
    })
    process.stderr.write(clear)
    process.stdout.write(json ? `${JSON.stringify(result)}\n` : printParity(result))
    const broken = result.drifts.flatMap(({ precision, broken }) => broken.map((what) => `${precision}: ${what}`))
    if (broken.length > 0) throw new DeviceError('drift', `parity: ${broken.join('; ')}`)
  } finally {
    for (const device of opened) await device.dispose()
  }
}

const count = (text: string): number => {
  const value = Number(text)
  if (!(Number.isInteger(value) && value > 0)) throw new InvalidArgumentError('Not a positive integer.')
  return value
}

/** Adds the command to the program. */
export function addParity(program: Command, host: Host): void {
  addCacheFlags(program.command('parity'))
    .description('compare speech on a GPU, in f32 and in f16, with the CPU')
    .option('-m, --model <where>', 'a Zonos checkpoint: folder, URL or hf:owner/name (default: the small voice inside)')
    .option('--codec <where>', `a DAC checkpoint (default: the small one, or with --model ${CODEC})`)
    .addOption(
      new Option('-d, --device <kind>', 'what to compare').choices(['webgpu', 'cuda', 'metal']).default('webgpu'),
    )
    .option('--frames <n>', 'length of the utterance, 86 a second (default: 96)', count)
    .option('--json', 'print one JSON object')
    .action((flags: ParityFlags) => parity(flags, host))
}
