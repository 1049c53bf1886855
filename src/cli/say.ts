import { access, constants, readFile, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { text as readAll } from 'node:stream/consumers'
import { addAbortSignal } from 'node:stream'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { printSpoken, printSpeechProgress } from '../apps/tts/print.ts'
import {
  decodeWav,
  type DeviceChoice,
  deviceChoices,
  encodeWav,
  InputError,
  loadTts,
  mono,
  openDevice,
  type Precision,
  type SayOptions,
  type Sound,
} from '../index.ts'
import { addModelFlags, type ModelFlags, openModel } from './model.ts'

interface SayFlags extends ModelFlags {
  readonly output: string
  readonly language: string
  readonly seed: number
  readonly voice: number
  readonly speaker?: string
  readonly rate?: number
  readonly pitch?: number
  readonly fmax?: number
  readonly emotion?: SayOptions['emotion']
  readonly cfg?: number
  readonly temperature?: number
  readonly minP?: number
  readonly topP?: number
  readonly topK?: number
  readonly numbers?: 'spoken' | 'upstream' | 'written'
  readonly dictionary?: string
  readonly maxSeconds?: number
  readonly prefix?: string
  readonly format: 's16' | 'f32'
  readonly model?: string
  readonly codec?: string
  readonly device: DeviceChoice
  readonly precision: Precision
  readonly weights: 'auto' | 'q8'
}

/** What a command has from the program. */
export interface Host {
  readonly root: string // of the package
  readonly signal: AbortSignal
  readonly clear: string // ends the line of progress
  readonly note: (line: string) => void
}

/** Where the codec of the published checkpoints is. */
export const CODEC = 'hf:descript/dac_44khz'

/** `pronounce say`: speech into a WAV file, everything else on stderr. */
async function say(text: string, flags: SayFlags, { root, signal, clear, note }: Host): Promise<void> {
  const words = text === '-' ? (await readAll(addAbortSignal(signal, process.stdin))).trim() : text
  await expectWritable(flags.output) // before the work, not after it
  const speaker = flags.speaker === undefined ? undefined : await readSpeaker(flags.speaker)
  const dictionary = flags.dictionary === undefined ? undefined : await readDictionary(flags.dictionary)
  const prefix = flags.prefix === undefined ? undefined : await readPrefix(flags.prefix)
  const numbers = flags.numbers === 'written' ? 'as written' : flags.numbers
  const device = await openDevice(flags.device, {
    precision: flags.precision,
    onWarning: (message) => note(`warning: ${message}`),
  })
  try {
    note(`device: ${device.report.line}`)
    const inside = (name: string) => join(root, 'public/models', name)
    const live = process.stderr.isTTY === true
    const open = (where: string) =>
      openModel(where, flags, live ? (line) => process.stderr.write(clear + line) : undefined)
    const tts = await loadTts(open(flags.model ?? inside('zonos-nano')), {
      device,
      codec: open(flags.codec ?? (flags.model === undefined ? inside('dac-nano') : CODEC)),
      weights: flags.weights,
      signal,
      onProgress: live
        ? ({ loadedBytes, totalBytes }) =>
            void process.stderr.write(`${clear}loading ${Math.round((100 * loadedBytes) / totalBytes)} %`)
        : undefined,
    })
    if (prefix && prefix.rate !== tts.sampleRate)
      throw new InputError(`--prefix: has ${prefix.rate} Hz, expected ${tts.sampleRate}; resample it first`)
    const audioPrefix = prefix && (await tts.encode(mono(prefix), { signal }))
    const { language, voice, emotion, fmax, cfg, maxSeconds, seed, temperature, minP, topP, topK } = flags
    const spoken = await tts.say(words, {
      ...{ language, voice, speaker, emotion, fmax, speakingRate: flags.rate, pitchStd: flags.pitch },
      ...{ cfgScale: cfg, maxSeconds, audioPrefix, numbers, dictionary, signal },
      sampling: { seed, ...defined({ temperature, minP, topP, topK }) },
      onPhonemes: (phonemes) => note(`phonemes: ${phonemes}`),
      onProgress: live ? (p) => void process.stderr.write(`${clear}${printSpeechProgress(p, tts)}`) : undefined,
    })
    process.stderr.write(clear)
    const wav = encodeWav(spoken.samples, spoken.sampleRate, flags.format)
    if (flags.output === '-') process.stdout.write(wav)
    else await writeFile(flags.output, wav).catch((cause: Error) => Promise.reject(unwritable(flags.output, cause)))
    for (const line of printSpoken(spoken)) note(line)
    if (flags.model === undefined && !/^en/i.test(language))
      note(`note: the small voice knows English alone; ${language} asks for --model`)
    if (flags.model === undefined)
      note(
        'note: the small voice that comes with pronounce spoke: English, one speaker, short sentences; ' +
          'for the full model add --model hf:Zyphra/Zonos-v0.1-transformer',
      )
    await tts.dispose()
  } finally {
    await device.dispose()
  }
}

async function expectWritable(path: string): Promise<void> {
  if (path === '-') {
    if (process.stdout.isTTY) throw new InputError('--output: stdout is a terminal, expected a file or a pipe')
    return
  }
  const found = await stat(path).catch(() => undefined)
  if (found?.isDirectory()) throw new InputError(`--output: ${path} is a folder, expected a file`)
  await access(found ? path : dirname(path), constants.W_OK).catch((cause) => Promise.reject(unwritable(path, cause)))
}

const unwritable = (path: string, cause: Error): InputError =>
  new InputError(
    `--output: ${path} cannot be written (${cause.message}), expected a file in a folder that is there`,
    'input',
    {
      cause,
    },
  )

const defined = <A extends object>(values: A): Partial<A> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Partial<A>

/** A JSON file: the speaker's numbers, or { "speaker": [...] }. */
async function readSpeaker(path: string): Promise<readonly number[]> {
  const expected = 'a JSON array of numbers'
  const value = await readJson('--speaker', path, expected)
  const numbers = Array.isArray(value) ? value : (value as { speaker?: unknown } | null)?.speaker
  if (Array.isArray(numbers) && numbers.every((n) => typeof n === 'number')) return numbers
  throw new InputError(`--speaker: ${path} holds something else, expected ${expected}`)
}

/** A JSON file: { "word": "/IPA/ or other words" }. */
async function readDictionary(path: string): Promise<Record<string, string>> {
  const expected = 'a JSON object of words and what is said for them'
  const value = await readJson('--dictionary', path, expected)
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  if (isObject && Object.values(value).every((said) => typeof said === 'string')) return value as Record<string, string>
  throw new InputError(`--dictionary: ${path} holds something else, expected ${expected}`)
}

async function readJson(flag: string, path: string, expected: string): Promise<unknown> {
  const fail = (what: string, cause: Error) =>
    new InputError(`${flag}: ${path} ${what} (${cause.message}), expected ${expected}`, 'input', { cause })
  const json = await readFile(path, 'utf8').catch((cause: Error) => {
    throw fail('cannot be read', cause)
  })
  try {
    return JSON.parse(json)
  } catch (cause) {
    throw fail('is not JSON', cause as Error)
  }
}

async function readPrefix(path: string): Promise<Sound> {
  const file = await readFile(path).catch((cause: Error) => {
    throw new InputError(`--prefix: ${path} cannot be read (${cause.message}), expected a WAV file`, 'input', { cause })
  })
  try {
    return decodeWav(file)
  } catch (cause) {
    throw new InputError(`--prefix: ${path}: ${(cause as Error).message}`, 'input', { cause })
  }
}

const number = (text: string): number => {
  const value = Number(text)
  if (text.trim() === '' || !Number.isFinite(value)) throw new InvalidArgumentError('Not a number.')
  return value
}

/** 'happiness=1,anger=0.2' */
function emotions(text: string): SayOptions['emotion'] {
  const pairs = text.split(',').map((pair) => pair.split('='))
  if (pairs.some((pair) => pair.length !== 2)) throw new InvalidArgumentError('Expected name=share,...')
  return Object.fromEntries(pairs.map(([name, share]) => [name!.trim(), number(share!)]))
}

/** Adds the command to the program. */
export function addSay(program: Command, host: Host): void {
  addModelFlags(program.command('say'))
    .description('say a text, into a WAV file')
    .argument('<text>', 'the text, with IPA between slashes where it should be exact; - reads stdin')
    .requiredOption('-o, --output <file.wav>', 'where the speech goes; - is stdout')
    .option('-l, --language <code>', 'one of espeak-ng’s', 'en-us')
    .option('-s, --seed <n>', 'the same seed, the same speech', number, 0)
    .option('--voice <n>', 'seed of a made-up voice', number, 0)
    .option('--speaker <file.json>', 'a voice: the numbers of a speaker embedding')
    .option('--rate <n>', 'phonemes a second: 10 is slow, 30 very fast (default: 15)', number)
    .option('--pitch <n>', 'how much it varies: 20 to 45 is normal, 60 to 150 lively (default: 20)', number)
    .option(
      '--emotion <name=share,...>',
      'happiness, sadness, disgust, fear, surprise, anger, other, neutral',
      emotions,
    )
    .option('--fmax <hertz>', 'highest frequency (default: 22050)', number)
    .option('--cfg <n>', 'how far it keeps to all this; 1 is fastest (default: 2)', number)
    .option('--temperature <n>', '0: the most probable codes always (default: 1)', number)
    .option('--min-p <n>', 'least share of the most probable code’s probability (default: 0.1)', number)
    .option('--top-p <n>', 'draw from the most probable codes that together reach this', number)
    .option('--top-k <n>', 'draw from so many of the most probable codes', number)
    .addOption(
      new Option(
        '--numbers <kind>',
        'upstream: as Zonos’ own; written: by espeak-ng (default: spoken in English)',
      ).choices(['spoken', 'upstream', 'written']),
    )
    .option('--dictionary <file.json>', 'words, and the /IPA/ or other words that are said for them')
    .option('--max-seconds <n>', 'speech at most (default: 30)', number)
    .option('--prefix <file.wav>', 'earlier speech of 44.1 kHz that is continued; the text says it too')
    .addOption(new Option('--format <kind>', 'of the samples').choices(['s16', 'f32']).default('s16'))
    .option('-m, --model <where>', 'a Zonos checkpoint: folder, URL or hf:owner/name (default: the small voice inside)')
    .option('--codec <where>', `a DAC checkpoint (default: the small one, or with --model ${CODEC})`)
    .addOption(new Option('-d, --device <kind>', 'where to run').choices(deviceChoices).default('auto'))
    .addOption(new Option('-p, --precision <kind>', 'f32: no half precision').choices(['auto', 'f32']).default('auto'))
    .addOption(
      new Option('--weights <kind>', 'q8: 8-bit weights, half the memory').choices(['auto', 'q8']).default('auto'),
    )
    .action((text: string, flags: SayFlags) => say(text, flags, host))
}
