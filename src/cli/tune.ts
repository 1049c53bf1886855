import { type Command, Option } from 'commander'
import { printProgress, printTuned, printTunings } from '../apps/tuner/print.ts'
import { keptTunings, productsOf, publishedProducts, tune } from '../index.ts'
import { addDeviceOptions, type Host, inside, liveLine, type ModelFlags, withDevice } from './host.ts'
import { addCacheFlags, openModel } from './model.ts'

interface TuneFlags extends ModelFlags {
  readonly heights?: string
  readonly quick?: true
  readonly software?: true
  readonly show?: true
  readonly reset?: true
}

/** `pronounce tune`: what was found on stdout, as it is found; progress on stderr. */
async function tunePlans(flags: TuneFlags, host: Host): Promise<void> {
  const { signal, clear, note } = host
  const onWarning = (message: string) => note(`warning: ${message}`)
  const tunings = keptTunings({ onWarning })
  if (flags.reset) return tunings.forget() // opens no device: a plan may be what keeps it from opening
  if (flags.show) return void process.stdout.write(printTunings(await tunings.all()))
  const { model, heights, quick, software } = flags
  const products =
    model === undefined
      ? [...publishedProducts(), ...(await productsOf(inside(host, 'decider-nano')))]
      : await productsOf(openModel(model, flags, liveLine(host)), { signal })
  await withDevice(flags, host, (device) =>
    tune(device, products, {
      heights: heights?.split(',').map(Number),
      ...{ quick, software, signal, onWarning },
      ...(process.stderr.isTTY && { onProgress: (p) => process.stderr.write(`${clear}${printProgress(p)}`) }),
      onTuned: (tuned) => {
        process.stderr.write(clear)
        process.stdout.write(printTuned(tuned))
      },
    }),
  )
}

/** Adds the command to the program. */
export function addTune(program: Command, host: Host): void {
  const command = program
    .command('tune')
    .description('measure which kernels are fastest on this GPU, and keep that for it')
    .option(
      '-m, --model <where>',
      'the checkpoint to tune for (default: the published sizes and the small model inside)',
    )
    .option('--heights <rows,...>', 'rows of the runs to measure')
    .option('--quick', 'a rougher result, sooner')
    .option('--software', 'let a software adapter pass; it says nothing about GPUs')
    .addOption(new Option('--show', 'print what is kept').conflicts('reset'))
    .option('--reset', 'forget all that is kept')
  addCacheFlags(addDeviceOptions(command, ['webgpu', 'cuda', 'metal'])).action((options: TuneFlags) =>
    tunePlans(options, host),
  )
}
