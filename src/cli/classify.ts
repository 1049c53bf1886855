import type { Command } from 'commander'
import { SingleBar } from 'cli-progress'
import { type Classify, classifier, type Line } from '../apps/decider/classify.ts'
import { InputError } from '../index.ts'
import { addModelOptions, type Host, integer, type ModelFlags, withDecider } from './host.ts'
import { addImageFlags, IMAGE_HELP, type ImageFlags, imagesBeside } from './images.ts'
import { type Log, openLog, readLines } from './jsonl.ts'
import { readSchema } from './schema.ts'

interface ClassifyFlags extends ModelFlags, ImageFlags {
  readonly schema?: string
  readonly batch: number
}

const BATCH_CHARACTERS = 4 * 2 ** 20 // long rows make smaller batches, so that memory stays bounded

/**
 * `pronounce classify`: a line of answers for every row, in order. The file of answers says how far it came, so that a
 * killed run goes on there: its last whole line stays, what is left of a line goes.
 */
async function classifyFile(input: string, output: string, flags: ClassifyFlags, host: Host): Promise<void> {
  const { signal, note } = host
  const questions = flags.schema === undefined ? undefined : await readSchema(flags.schema)
  await withDecider(flags, host, async (decider) => {
    const classify = classifier(decider, questions, { imageOf: imagesBeside(input), maxPixels: flags.maxPixels })
    const log = await openLog('output', output, '{"row":')
    try {
      const rows = readLines('input', input, signal)
      if (log.last !== undefined) {
        await skip(rows, log, classify, { input, output }, signal)
        note(`note: goes on after ${log.lines} rows`)
      }
      const { answered, failed } = await answerAll(batches(rows, flags.batch), classify, log, signal)
      note(`classified ${answered} rows${failed > 0 ? `, ${failed} of them could not be asked and have an error` : ''}`)
    } finally {
      await log.close()
    }
  })
}

/** Passes over the rows that are answered. The last is answered once more, to see that this goes on with the same. */
async function skip(
  rows: AsyncGenerator<Line>,
  { lines, last }: Log,
  classify: Classify,
  { input, output }: { readonly input: string; readonly output: string },
  signal: AbortSignal,
): Promise<void> {
  let row: Line | undefined
  for (let i = 0; i < lines; i++) row = (await rows.next()).value
  if (!row) throw new InputError(`output: ${output} has ${lines} rows, more than ${input}; choose another file`)
  const [again] = await classify([row], signal)
  if (again === last) return
  throw new InputError(
    `output: row ${lines} of ${output} is not what ${input}, these questions, this model and this device give, ` +
      'expected the begin of the same; choose another file',
  )
}

async function* batches(rows: AsyncIterable<Line>, most: number): AsyncGenerator<Line[]> {
  let batch: Line[] = []
  let characters = 0
  for await (const row of rows) {
    batch.push(row)
    characters += row.text.length
    if (batch.length < most && characters < BATCH_CHARACTERS) continue
    yield batch
    batch = []
    characters = 0
  }
  if (batch.length > 0) yield batch
}

/** Two batches are under way: the next is read and encoded while the device runs the last. */
async function answerAll(groups: AsyncIterable<Line[]>, classify: Classify, log: Log, signal: AbortSignal) {
  const bar = new SingleBar({
    format: 'classified {value} rows, {duration_formatted}',
    stream: process.stderr,
    clearOnComplete: true,
  })
  let answered = 0
  let failed = 0
  const write = async (pending: Promise<string[]>): Promise<void> => {
    const lines = await pending
    await log.append(lines)
    answered += lines.length
    failed += lines.filter((line) => 'error' in JSON.parse(line)).length
    bar.update(answered)
  }
  if (process.stderr.isTTY) bar.start(0, 0)
  try {
    let pending: Promise<string[]> | undefined
    for await (const group of groups) {
      const next = classify(group, signal)
      next.catch(() => {}) // told when it is its turn
      if (pending) await write(pending)
      pending = next
    }
    if (pending) await write(pending)
  } finally {
    bar.stop()
  }
  return { answered, failed }
}

/** Adds the command to the program. */
export function addClassify(program: Command, host: Host): void {
  const command = program
    .command('classify')
    .description('answer questions about any number of texts; started again after a kill, it goes on')
    .argument('<in.jsonl>', `rows {state, image?, questions?, id?}; ${IMAGE_HELP}`)
    .argument('<out.jsonl>', 'a line {row, id?, model, answers, usage} or {row, id?, error} for each')
    .option('-s, --schema <file.json>', 'questions for rows without their own: {name: {type, question, options}}')
    .option('-b, --batch <rows>', 'rows that are run together', integer(1), 64)
  addModelOptions(addImageFlags(command)).action((input: string, output: string, flags: ClassifyFlags) =>
    classifyFile(input, output, flags, host),
  )
}
