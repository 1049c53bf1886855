import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { SingleBar } from 'cli-progress'
import type { Command } from 'commander'
import {
  type Evaluation,
  evaluation,
  type Example,
  type Prediction,
  predict,
  readExample,
} from '../apps/decider/evaluate.ts'
import type { Metrics } from '../apps/decider/metrics.ts'
import { reliabilitySvg } from '../apps/decider/reliability.ts'
import { type Decider, InputError } from '../index.ts'
import { addModelOptions, type Host, integer, type ModelFlags, positive, withDecider } from './host.ts'
import { addImageFlags, IMAGE_HELP, type ImageFlags, imageFile, imagesBeside } from './images.ts'
import { type Log, openLog, readLines } from './jsonl.ts'

interface EvaluateFlags extends ModelFlags, ImageFlags {
  readonly data: string
  readonly out: string
  readonly temperature?: number
  readonly batch: number
  readonly limit?: number
}

/** What an evaluation has to have in common with what it goes on from. */
interface Provenance {
  readonly model: string
  readonly checkpoint: string
  readonly data: { readonly path: string; readonly sha256: string; readonly rows: number }
  readonly device: string
  readonly dtype: string
  /** Where rows have images: of the files that they name, and at how many pixels images were read at most. */
  readonly images?: { readonly sha256: string; readonly maxPixels: number }
  readonly pronounce: string
}

/**
 * `pronounce evaluate`: predictions.jsonl as they come, eval.json and reliability.svg at the end, all in a folder; the
 * table on stdout. Started again, it goes on where it was.
 */
async function evaluate(flags: EvaluateFlags, host: Host): Promise<void> {
  const { signal, note } = host
  const examples = await readExamples(flags, signal)
  await mkdir(flags.out, { recursive: true })
  await withDecider(flags, host, async (decider) => {
    const provenance = await provenanceOf(flags, host, decider, examples)
    await expectSame(join(flags.out, 'run.json'), provenance)
    const log = await openLog('--out', join(flags.out, 'predictions.jsonl'), '{"task":')
    try {
      if (log.lines > 0) note(`note: goes on after ${log.lines} of ${examples.length} rows`)
      await predictRest(decider, examples, log, flags, signal)
    } finally {
      await log.close()
    }
    const predictions: Prediction[] = []
    for await (const { number, text } of readLines('--out', join(flags.out, 'predictions.jsonl'), signal))
      predictions.push(readPrediction(text, number))
    const { temperatures } = decider.config
    const found = evaluation(predictions, flags.temperature ?? temperatures)
    const report = {
      ...found,
      provenance: {
        ...provenance,
        temperature: flags.temperature ?? temperatures,
        device_report: decider.device.report.line,
        node: process.version,
        date: new Date().toISOString(),
      },
    }
    await writeFile(join(flags.out, 'eval.json'), `${JSON.stringify(report, null, 2)}\n`)
    await writeFile(
      join(flags.out, 'reliability.svg'),
      reliabilitySvg(found.reliability, found.agg.rows, decider.model),
    )
    process.stdout.write(printEvaluation(found))
  })
}

async function readExamples({ data, limit = Infinity }: EvaluateFlags, signal: AbortSignal): Promise<Example[]> {
  const examples: Example[] = []
  for await (const { number, text } of readLines('--data', data, signal)) {
    if (examples.length >= limit) break
    const example = readExample(text, `--data: line ${number} of ${data}`)
    if (example) examples.push(example)
  }
  if (examples.length === 0) throw new InputError(`--data: ${data} has no rows, expected at least one`)
  return examples
}

async function provenanceOf(
  flags: EvaluateFlags,
  host: Host,
  decider: Decider,
  examples: readonly Example[],
): Promise<Provenance> {
  const { name, dtype } = decider.device.report
  return {
    model: decider.model,
    checkpoint: flags.model ?? 'the small model inside',
    data: { path: flags.data, sha256: await sha256(flags.data), rows: examples.length },
    device: name,
    dtype,
    ...(examples.some(({ image }) => image !== undefined) && {
      images: { sha256: await imagesSha256(examples, flags.data, host.signal), maxPixels: flags.maxPixels },
    }),
    pronounce: host.version,
  }
}

async function sha256(file: string | URL): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(file), hash)
  return hash.digest('hex')
}

/** Of the image files in the order of the rows: a file that changes between two starts must not go unseen. */
async function imagesSha256(examples: readonly Example[], data: string, signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256')
  for (const { image, where } of examples) {
    const file = image === undefined ? undefined : imageFile(data, image)
    if (!file) continue
    signal.throwIfAborted()
    const own = await sha256(file).catch((cause: Error) => {
      throw new InputError(`${where}: image: ${file} cannot be read: ${cause.message}`, 'input', { cause })
    })
    hash.update(own)
  }
  return hash.digest('hex')
}

/** Writes down what this is, or refuses to go on with something else. */
async function expectSame(path: string, provenance: Provenance): Promise<void> {
  const text = `${JSON.stringify(provenance, null, 2)}\n`
  const before = await readFile(path, 'utf8').catch(() => undefined)
  if (before === undefined) return writeFile(path, text)
  if (before !== text)
    throw new InputError(`--out: ${path} is of another evaluation, expected one of the same; choose another folder`)
}

async function predictRest(
  decider: Decider,
  examples: readonly Example[],
  log: Log,
  { data, batch, maxPixels }: EvaluateFlags,
  signal: AbortSignal,
): Promise<void> {
  const options = { imageOf: imagesBeside(data), maxPixels, signal }
  const bar = new SingleBar({
    format: 'evaluating {bar} {percentage} % | {value} of {total} rows | {eta_formatted} left',
    stream: process.stderr,
    clearOnComplete: true,
    hideCursor: true,
  })
  if (process.stderr.isTTY) bar.start(examples.length, log.lines)
  try {
    for (let at = log.lines; at < examples.length; at += batch) {
      const predictions = await predict(decider, examples.slice(at, at + batch), options)
      await log.append(predictions.map((prediction) => JSON.stringify(prediction)))
      bar.increment(predictions.length)
    }
  } finally {
    bar.stop()
  }
}

const COLUMNS = ['n', 'acc', 'nll', 'brier', 'ece', 'aurc', 'acc_at_80', 'acc_at_50'] as const

/** A line for each task, then their means and all rows together. */
function printEvaluation({ results, agg }: Evaluation): string {
  const lines: [string, Partial<Metrics>][] = [
    ...Object.entries(results),
    ['mean of tasks', agg.tasks],
    ...(agg.in_task ? [['mean of trained tasks', agg.in_task] as [string, Partial<Metrics>]] : []),
    ...(agg.heldout ? [['mean of other tasks', agg.heldout] as [string, Partial<Metrics>]] : []),
    ['all rows', agg.rows],
  ]
  const width = Math.max(...lines.map(([name]) => name.length))
  const cell = (key: (typeof COLUMNS)[number], value: number | undefined): string =>
    (value === undefined ? '' : key === 'n' ? String(value) : value.toFixed(4)).padStart(10)
  const head = ['task'.padEnd(width), ...COLUMNS.map((key) => key.padStart(10))].join('')
  const rows = lines.map(([name, m]) => [name.padEnd(width), ...COLUMNS.map((key) => cell(key, m[key]))].join(''))
  return `${[head, ...rows].join('\n')}\n`
}

function readPrediction(text: string, number: number): Prediction {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new InputError(
      `--out: line ${number} of predictions.jsonl is damaged; remove the folder and begin anew`,
      'input',
      { cause },
    )
  }
}

/** Adds the command to the program. */
export function addEvaluate(program: Command, host: Host): void {
  const command = program
    .command('evaluate')
    .description('measure accuracy and calibration on rows with known answers')
    .requiredOption(
      '--data <rows.jsonl>',
      `rows {context, image?, question, options, gold, task?, type?, heldout?}; ${IMAGE_HELP}`,
    )
    .option(
      '-o, --out <folder>',
      'predictions.jsonl, eval.json and reliability.svg; goes on with what is there',
      'evaluation',
    )
    .option('-t, --temperature <n>', "one for all answers instead of the model's own", positive)
    .option('-b, --batch <rows>', 'rows that are run together', integer(1), 32)
    .option('--limit <rows>', 'the first rows alone', integer(1))
  addModelOptions(addImageFlags(command)).action((flags: EvaluateFlags) => evaluate(flags, host))
}
