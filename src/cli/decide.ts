import { readFile } from 'node:fs/promises'
import { text as readAll } from 'node:stream/consumers'
import { addAbortSignal } from 'node:stream'
import { type Command, Option } from 'commander'
import pico from 'picocolors'
import { type Flag, questionsOf } from '../apps/decider/flags.ts'
import { printDecision } from '../apps/decider/print.ts'
import { InputError, type Questions, readQuestions } from '../index.ts'
import { addModelOptions, type Host, type ModelFlags, withDecider } from './host.ts'
import { addImageFlags, type ImageFlags } from './images.ts'
import { readSchema } from './schema.ts'

interface DecideFlags extends ModelFlags, ImageFlags {
  readonly image?: string
  readonly schema?: string
  readonly json?: true
}

/** `pronounce decide`: answers on stdout, everything else on stderr. */
async function decide(text: string, questions: Questions, flags: DecideFlags, host: Host): Promise<void> {
  const { signal, note } = host
  const state = text === '-' ? (await readAll(addAbortSignal(signal, process.stdin))).replace(/\r?\n$/, '') : text
  const image = flags.image === undefined ? undefined : await readImageFile(flags.image)
  await withDecider(flags, host, async (decider) => {
    const decision = await decider.decide(state, questions, { signal, image, maxPixels: flags.maxPixels })
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
  })
}

async function readImageFile(path: string): Promise<Uint8Array> {
  return readFile(path).catch((cause: Error) => {
    throw new InputError(`--image: ${path} cannot be read (${cause.message}), expected an image file`, 'input', {
      cause,
    })
  })
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

/** Adds the command to the program. */
export function addDecide(program: Command, host: Host): void {
  const flags: Flag[] = [] // in the order of the command line, which commander does not keep
  const collect = (name: Flag['name']) => (value: string) => flags.push({ name, value })
  const command = program
    .command('decide')
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
    .option('-i, --image <file>', 'an image that is shown before the text: PNG, JPEG, WebP or GIF')
    .option('-s, --schema <file.json>', 'questions as {name: {type, question, options}}')
    .option('--json', 'print one JSON object')
  addModelOptions(addImageFlags(command)).action(async (text: string, options: DecideFlags, command: Command) => {
    const questions = options.schema === undefined ? readFlags(command, flags) : await readSchema(options.schema)
    await decide(text, questions, options, host)
  })
}
