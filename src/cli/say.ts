import { type Command, InvalidArgumentError, Option } from 'commander'
import { printSpoken, printSpeechProgress } from '../apps/tts/print.ts'
import {
  checkSay,
  type DeviceChoice,
  deviceChoices,
  InputError,
  loadTts,
  mono,
  openDevice,
  type Precision,
  type SayOptions,
  type SpeechReport,
  type Tts,
  type WavFormat,
} from '../index.ts'
import { type Host, inside, liveLine, showLoading } from './host.ts'
import { addCacheFlags, type CacheFlags, openModel } from './model.ts'
import { findPlayer, playerOutput } from './player.ts'
import { readDictionary, readPrefix, readSpeaker, readText, type Speaker } from './say_inputs.ts'
import { type Turn, turnsOf } from './script.ts'
import { expectWritable, openOutput, type SoundOut } from './sound_out.ts'

interface SayFlags extends CacheFlags {
  readonly file?: string
  readonly output?: string
  readonly stream?: true
  readonly play?: true
  readonly raw?: true
  readonly language: string
  readonly seed: number
  readonly voice: number
  readonly speaker?: readonly string[]
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
  readonly format: WavFormat
  readonly model?: string
  readonly codec?: string
  readonly device: DeviceChoice
  readonly precision: Precision
  readonly weights: 'auto' | 'q8'
}

/** Where the codec of the published checkpoints is. */
export const CODEC = 'hf:descript/dac_44khz'
/** Seconds between what two voices say. */
const BETWEEN_TURNS = 0.35

/** `pronounce say`: speech into a WAV file or a player, everything else on stderr. */
async function say(given: string | undefined, flags: SayFlags, host: Host): Promise<void> {
  const { signal, clear, note } = host
  const { output, language, model } = flags
  if (output !== undefined) await expectWritable(output) // all that can be wrong comes before the work
  const player = flags.play && (await findPlayer())
  const text = await readText(given, flags.file, signal)
  const speakers = await Promise.all((flags.speaker ?? []).map(readSpeaker))
  const names = speakers.map(({ name }) => name)
  const twice = names.find((name, i) => names.slice(0, i).some((other) => other.toLowerCase() === name.toLowerCase()))
  if (twice !== undefined) throw new InputError(`--speaker: two are called ${twice}; name them, one=a.json two=b.json`)
  const prefix = flags.prefix === undefined ? undefined : await readPrefix(flags.prefix)
  const live = liveLine(host)
  const open = (where: string) => openModel(where, flags, live)
  const source = open(model ?? inside(host, 'zonos-nano'))
  const options = { ...(await settings(flags)), signal, onWarning: (message: string) => note(`warning: ${message}`) }
  for (const { name: _, ...speaker } of speakers.length > 0 ? speakers : [{ name: '' }])
    await checkSay(source, { ...options, ...speaker })

  const device = await openDevice(flags.device, { precision: flags.precision, onWarning: options.onWarning })
  try {
    note(`device: ${device.report.line}`)
    const codec = open(flags.codec ?? (model === undefined ? inside(host, 'dac-nano') : CODEC))
    const load = { device, codec, weights: flags.weights, signal, onProgress: live && showLoading(host) }
    const tts = await loadTts(source, load)
    const rate = tts.sampleRate
    if (prefix && prefix.rate !== rate)
      throw new InputError(`--prefix: has ${prefix.rate} Hz, expected ${rate}; resample it first`)
    const audioPrefix = prefix && (await tts.encode(mono(prefix), { signal }))
    const sound = { rate, format: flags.format, raw: flags.raw }
    const outs: SoundOut[] = []
    try {
      if (output !== undefined) outs.push(await openOutput(output, flags.stream === true, sound))
      if (player) outs.push(await playerOutput(player, rate))
      const onPhonemes = (phonemes: string) => note(`phonemes: ${phonemes}`)
      const onProgress: SayOptions['onProgress'] = live
        ? (progress) => live(printSpeechProgress(progress, tts))
        : undefined
      const said = sayTurns(tts, turnsOf(text, names), speakers, { ...options, audioPrefix, onPhonemes, onProgress })
      for await (const { samples, report } of said) {
        for (const out of outs) if (samples) await out.write(samples)
        process.stderr.write(clear)
        for (const line of report ? printSpoken(report) : []) note(line)
      }
      for (const out of outs) await out.end()
    } catch (error) {
      await Promise.all(outs.map((out) => out.stop()))
      throw error
    }
    if (model === undefined && !/^en/i.test(language))
      note(`note: the small voice knows English alone; ${language} asks for --model`)
    if (model === undefined)
      note(
        'note: the small voice that comes with pronounce spoke: English, one speaker; ' +
          'for the full model add --model hf:Zyphra/Zonos-v0.1-transformer',
      )
    await tts.dispose()
  } finally {
    await device.dispose()
  }
}

/** What all voices say with. */
async function settings(flags: SayFlags): Promise<SayOptions> {
  const { language, voice, emotion, fmax, cfg, maxSeconds, seed, temperature, minP, topP, topK } = flags
  return {
    ...{ language, voice, emotion, fmax, speakingRate: flags.rate, pitchStd: flags.pitch, cfgScale: cfg, maxSeconds },
    numbers: flags.numbers === 'written' ? 'as written' : flags.numbers,
    dictionary: flags.dictionary === undefined ? undefined : await readDictionary(flags.dictionary),
    sampling: { seed, ...defined({ temperature, minP, topP, topK }) },
  }
}

const defined = (values: Readonly<Record<string, number | undefined>>): Record<string, number> =>
  Object.fromEntries(Object.entries(values).flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])))

interface Heard {
  readonly samples?: Float32Array
  readonly report?: SpeechReport // of a turn, when it is over
}

/** Samples of one turn after another, each in its voice. */
async function* sayTurns(
  tts: Tts,
  turns: readonly Turn[],
  speakers: readonly Speaker[],
  options: SayOptions,
): AsyncGenerator<Heard> {
  for (const [i, { name, text }] of turns.entries()) {
    if (i > 0) yield { samples: new Float32Array(BETWEEN_TURNS * tts.sampleRate) }
    const { name: _, ...speaker } = speakers.find((speaker) => speaker.name === name) ?? { name }
    const audioPrefix = i === 0 ? options.audioPrefix : undefined
    const speech = tts.say(text, { ...options, ...speaker, audioPrefix })
    for await (const { samples } of speech) yield { samples }
    yield { report: await speech.report }
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
  addCacheFlags(program.command('say'))
    .description('say a text, into a WAV file')
    .argument('[text]', 'the text, with IPA between slashes where it should be exact; - reads stdin')
    .option('-f, --file <path>', 'the text is in a file; lines that begin with "name:" are said by that --speaker')
    .option('-o, --output <file.wav>', 'where the speech goes; - is stdout')
    .option('--stream', 'write it while it is made')
    .option('--play', 'play it while it is made, with ffplay, aplay, paplay, sox or afplay')
    .option('-l, --language <code>', 'one of espeak-ng’s', 'en-us')
    .option('-s, --seed <n>', 'the same seed, the same speech', number, 0)
    .option('--voice <n>', 'seed of a made-up voice', number, 0)
    .option(
      '--speaker <[name=]file.json>',
      'a voice: the numbers of a speaker embedding; name=<n> is a made-up one. Several are told apart by "name:" in the text',
      (given: string, before: readonly string[] = []) => [...before, given],
    )
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
    .option('--max-seconds <n>', 'speech of a piece of the text at most (default: 30)', number)
    .option('--prefix <file.wav>', 'earlier speech of 44.1 kHz that is continued; the text says it too')
    .addOption(new Option('--format <kind>', 'of the samples').choices(['s16', 'f32']).default('s16'))
    .option('--raw', 'write the samples alone, without a WAV header')
    .option('-m, --model <where>', 'a Zonos checkpoint: folder, URL or hf:owner/name (default: the small voice inside)')
    .option('--codec <where>', `a DAC checkpoint (default: the small one, or with --model ${CODEC})`)
    .addOption(new Option('-d, --device <kind>', 'where to run').choices(deviceChoices).default('auto'))
    .addOption(new Option('-p, --precision <kind>', 'f32: no half precision').choices(['auto', 'f32']).default('auto'))
    .addOption(
      new Option('--weights <kind>', 'q8: 8-bit weights, half the memory').choices(['auto', 'q8']).default('auto'),
    )
    .action(async (text: string | undefined, flags: SayFlags, command: Command) => {
      if ((text === undefined) === (flags.file === undefined))
        command.error('error: pass the text, or --file with a text file')
      if (flags.output === undefined && !flags.play)
        command.error("error: required option '-o, --output <file.wav>' not specified, nor --play")
      await say(text, flags, host)
    })
}
