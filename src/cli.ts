#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { addAbortSignal } from 'node:stream'
import { text as readAll } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { type Command, CommanderError, Option, program } from 'commander'
import pico from 'picocolors'
import { type Flag, questionsOf } from './apps/decider/flags.ts'
import { printDecision } from './apps/decider/print.ts'
import { printProgress, printTuned, printTunings } from './apps/tuner/print.ts'
import { addCache } from './cli/cache.ts'
import { addModelFlags, type ModelFlags, openModel } from './cli/model.ts'
import { addParity } from './cli/parity.ts'
import { addSay } from './cli/say.ts'
import {
  type DeviceChoice,
  deviceChoices,
  InputError,
  type JsonValue,
  keptTunings,
  loadDecider,
  openDevice,
  parseJson,
  type Precision,
  type Progress,
  productsOf,
  publishedProducts,
  type Questions,
  readQuestions,
  tune,
} from './index.ts'

const PRECISIONS: readonly Precision[] = ['auto', 'f32']
const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..')
const NANO = join(ROOT, 'public/models/decider-nano') // comes with the package

interface DecideFlags extends ModelFlags {
  readonly schema?: string
  readonly json?: true
  readonly model?: string
  readonly device: DeviceChoice
  readonly precision: Precision
}

const CLEAR = process.stderr.isTTY ? '\r\x1b[K' : '' // the line of onProgress
const live = process.stderr.isTTY ? (line: string) => void process.stderr.write(`${CLEAR}${line}`) : undefined
const note = (line: string) => process.stderr.write(`${CLEAR}${line}\n`)

/** `pronounce decide`: answers on stdout, everything else on stderr. */
async function decide(text: string, questions: Questions, flags: DecideFlags, signal: AbortSignal): Promise<void> {
  const state = text === '-' ? (await readAll(addAbortSignal(signal, process.stdin))).replace(/\r?\n$/, '') : text
  const onWarning = (message: string) => note(`warning: ${message}`)
  const device = await openDevice(flags.device, { precision: flags.precision, onWarning })
  try {
    note(`device: ${device.report.line}`)
    const progress = process.stderr.isTTY ? onProgress : undefined
    const model = openModel(flags.model ?? NANO, flags, live)
    const decider = await loadDecider(model, { device, signal, onProgress: progress })
    process.stderr.write(CLEAR)
    const decision = await decider.decide(state, questions, { signal })
    const bars = process.stdout.isTTY === true
    const printed = flags.json
      ? `${JSON.stringify(decision)}\n`
      : printDecision(decision, { bars, color: bars && pico.isColorSupported })
    process.stdout.write(printed)
    const { truncatedTokens } = decision.usage
    if (truncatedTokens > 0)
      note(`note: the text is over the model's limit; its last ${truncatedTokens} tokens were not read`)
    if (!decider.calibrated) note('note: there is no decider_config.json; the probabilities are not calibrated')
    if (flags.model === undefined)
      note(
        `note: ${decision.model} answered, the small model that comes with pronounce; ` +
          'for a full one add --model hf:Mapika/decider-2b, or the folder or URL of another Decider checkpoint',
      )
    await decider.dispose()
  } finally {
    await device.dispose()
  }
}

function onProgress({ loadedBytes, totalBytes }: Progress): void {
  process.stderr.write(`${CLEAR}loading ${Math.round((100 * loadedBytes) / totalBytes)} %`)
}

interface TuneFlags extends ModelFlags {
  readonly model?: string
  readonly device: DeviceChoice
  readonly precision: Precision
  readonly heights?: string
  readonly quick?: true
  readonly software?: true
  readonly show?: true
  readonly reset?: true
}

/** `pronounce tune`: what was found on stdout, as it is found; progress on stderr. */
async function tunePlans(flags: TuneFlags, signal: AbortSignal): Promise<void> {
  const onWarning = (message: string) => note(`warning: ${message}`)
  const tunings = keptTunings({ onWarning })
  if (flags.reset) return tunings.forget() // opens no device: a plan may be what keeps it from opening
  if (flags.show) return void process.stdout.write(printTunings(await tunings.all()))
  const { model, heights, quick, software } = flags
  const products =
    model === undefined
      ? [...publishedProducts(), ...(await productsOf(NANO))]
      : await productsOf(openModel(model, flags, live), { signal })
  const device = await openDevice(flags.device, { precision: flags.precision, onWarning })
  try {
    note(`device: ${device.report.line}`)
    await tune(device, products, {
      heights: heights?.split(',').map(Number),
      ...{ quick, software, signal, onWarning },
      ...(process.stderr.isTTY && { onProgress: (p) => process.stderr.write(`${CLEAR}${printProgress(p)}`) }),
      onTuned: (tuned) => {
        process.stderr.write(CLEAR)
        process.stdout.write(printTuned(tuned))
      },
    })
  } finally {
    await device.dispose()
  }
}

async function readSchema(path: string): Promise<Questions> {
  const json = await readFile(path, 'utf8').catch((cause: Error) => {
    throw new InputError(`--schema: ${path} cannot be read (${cause.message}), expected a JSON file`, 'input', {
      cause,
    })
  })
  let parsed: JsonValue
  try {
    parsed = parseJson(json.replace(/^\uFEFF/, ''))
  } catch (cause) {
    throw new InputError(
      `--schema: ${path} is not JSON (${(cause as Error).message}), expected {name: {type, question, options}}`,
      'input',
      { cause },
    )
  }
  const questions = readQuestions(parsed)
  if (Object.keys(questions).length === 0)
    throw new InputError(`--schema: ${path} has no questions, expected at least one`)
  return questions
}

/** The questions of the flags; a mistake in them is a usage error. */
function readFlags(command: Command, flags: readonly Flag[]): Questions {
  if (flags.length === 0) command.error('error: no question; pass --question "..." --options a,b or --schema file.json')
  try {
    return readQuestions(questionsOf(flags)) // refused before anything is loaded
  } catch (error) {
    return command.error(`error: ${(error as Error).message}`)
  }
}

function createProgram(signal: AbortSignal): Command {
  const flags: Flag[] = [] // in the order of the command line, which commander does not keep
  const collect = (name: Flag['name']) => (value: string) => flags.push({ name, value })
  program
    .name('pronounce')
    .description('Typed answers with calibrated probabilities, and speech, on any GPU that WebGPU reaches.')
    .version(JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).version)
    .exitOverride()
  addModelFlags(program.command('decide'))
    .description('answer questions about a text')
    .argument('<text>', 'the text; - reads stdin, without its last line break')
    .addOption(
      new Option('-q, --question <text>', 'a question; yes or no without options')
        .argParser(collect('question'))
        .conflicts('schema'),
    )
    .addOption(
      new Option('-o, --options <a,b,c>', 'options of the question before it')
        .argParser(collect('options'))
        .conflicts('schema'),
    )
    .option('-s, --schema <file.json>', 'questions as {name: {type, question, options}}')
    .option('--json', 'print one JSON object')
    .option(
      '-m, --model <where>',
      'a Decider checkpoint: folder, URL or hf:owner/name (default: the small model inside)',
    )
    .addOption(new Option('-d, --device <kind>', 'where to run').choices(deviceChoices).default('auto'))
    .addOption(new Option('-p, --precision <kind>', 'f32: no half precision').choices(PRECISIONS).default('auto'))
    .action(async (text: string, options: DecideFlags, command: Command) => {
      const questions = options.schema === undefined ? readFlags(command, flags) : await readSchema(options.schema)
      await decide(text, questions, options, signal)
    })
  addModelFlags(program.command('tune'))
    .description('measure which kernels are fastest on this GPU, and keep that for it')
    .option(
      '-m, --model <where>',
      'the checkpoint to tune for (default: the published sizes and the small model inside)',
    )
    .addOption(new Option('-d, --device <kind>', 'what to tune').choices(['webgpu', 'cuda', 'metal']).default('webgpu'))
    .addOption(new Option('-p, --precision <kind>', 'f32: no half precision').choices(PRECISIONS).default('auto'))
    .option('--heights <rows,...>', 'rows of the runs to measure')
    .option('--quick', 'a rougher result, sooner')
    .option('--software', 'let a software adapter pass; it says nothing about GPUs')
    .addOption(new Option('--show', 'print what is kept').conflicts('reset'))
    .option('--reset', 'forget all that is kept')
    .action((options: TuneFlags) => tunePlans(options, signal))
  const host = { root: ROOT, signal, clear: CLEAR, note }
  addCache(program)
  addSay(program, host)
  addParity(program, host)
  return program
}

/** Runs a command line; the exit code: 0 answered, 1 failed, 2 wrong usage, 130 interrupted. */
async function main(argv: readonly string[]): Promise<number> {
  const interrupt = new AbortController()
  process.once('SIGINT', () => interrupt.abort()) // a second one ends the process at once
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit() // the reader has seen enough, as in `| head`
    note(`error: stdout: ${error.message}`)
    process.exit(1)
  })
  process.stderr.on('error', () => {}) // nobody listens; the answer still goes out
  try {
    await createProgram(interrupt.signal).parseAsync(argv)
    return 0
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2 // it has said why
    if (interrupt.signal.aborted) return 130
    const { message, stack } = error as Error
    note(`error: ${process.env.DEBUG ? stack : message}`)
    return 1
  }
}

process.exitCode = await main(process.argv)
