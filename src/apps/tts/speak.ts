import { InputError } from '../../errors.ts'
import type { DacSession } from '../../models/dac/session.ts'
import { decoderContext } from '../../models/dac/windows.ts'
import { guidedPrefixes } from '../../models/zonos/conditioning.ts'
import { CODEBOOKS } from '../../models/zonos/config.ts'
import type { Codes } from '../../models/zonos/delay.ts'
import { mostFrames } from '../../models/zonos/request.ts'
import { samplingOf } from '../../models/zonos/sampler.ts'
import type { SpeechOptions, ZonosSession } from '../../models/zonos/session.ts'
import type { ZonosWeights } from '../../models/zonos/weights.ts'
import { phonemeIds, unknownSymbols } from '../../text/symbols.ts'
import { EARLIEST, overlong, quietness, RETRIES, warningOf } from './guards.ts'
import { checkOptions, conditionsOf, DEFAULT_SECONDS, type SayOptions } from './options.ts'
import { OVERESTIMATE, type Piece, piecesOf } from './pieces.ts'
import { FIRST, type Said, sayPiece } from './say_piece.ts'
import { joinedCodes, type Outlet, type SpeechReport, type SpokenPiece } from './speech.ts'

/** What speaks, on one device. */
export interface Voice {
  readonly language: ZonosSession
  readonly weights: ZonosWeights
  readonly codec: DacSession
}

export interface Speaking {
  readonly phonemesOf: (text: string, options: SayOptions) => Promise<string>
  /** The codes of so many quiet frames. */
  readonly quiet: (frames: number) => Promise<Codes>
  readonly outlet: Outlet
  readonly signal: AbortSignal
}

/** Earlier speech that a piece continues: its phonemes come before the piece's own. */
interface Before {
  readonly phonemes: string
  readonly codes: Codes
}

const DEFAULT_RATE = 15 // phonemes a second, as upstream
const SLOWEST_RATE = 5 // of speech, whatever is asked for
/** Frames of quiet before a piece that continues no other: upstream's way to a clean begin (zonos.md 5.5). */
const QUIET_BEFORE = 10
const none: Codes = { frames: 0, data: new Uint16Array() }

/**
 * Says a text into the outlet, a piece each time it is resumed. A piece continues the one before: that one's phonemes
 * and codes are given to the model once more where both fit what it was trained on, and are not heard again, so that
 * the voice and its melody carry on. Between pieces the codec is given quiet codes, so a join is decoded like all else:
 * it cannot click.
 */
export async function* speak(
  { language, weights, codec }: Voice,
  text: string,
  options: SayOptions,
  { phonemesOf, quiet, outlet, signal }: Speaking,
): AsyncGenerator<void, SpeechReport> {
  if (typeof text !== 'string') throw new InputError(`say: the text is ${typeof text}, expected a string`)
  checkOptions(options, language.config)
  const { maxSeconds = DEFAULT_SECONDS, audioPrefix = none, cfgScale, negative, sampling } = options
  const { hidden, trainedSeconds } = language.config
  const { seed, temperature } = samplingOf(sampling)
  const { sampleRate, hop } = codec.config
  const framesPerSecond = sampleRate / hop
  const { left, right } = decoderContext(codec.config)
  const conditions = conditionsOf(options, language.config)
  const start = performance.now()
  const since = (from = start): number => (performance.now() - from) / 1000

  const took = { first: 0, language: 0 }
  const spoken: SpokenPiece[] = []
  const warnings: string[] = []
  const isQuiet = quietness()
  let frames = 0 // heard
  let context = audioPrefix // what the codec hears before the next piece
  let owed = 0 // the last frames of it, which were not handed out
  outlet.putCodes(audioPrefix)

  const rate = Math.max(SLOWEST_RATE, options.speakingRate ?? DEFAULT_RATE)
  const secondsOf = (phonemes: string) => phonemeIds(phonemes).length / rate
  const already = audioPrefix.frames / framesPerSecond
  const read = (words: string) => phonemesOf(words, options)
  const pieces = piecesOf(text, { read, secondsOf, trainedSeconds, before: already })

  /** `fresh`: seconds that the phonemes say, without those of the caller's own prefix. */
  async function say(piece: Piece, fresh: number, before: Before, seed: number): Promise<Said> {
    const ids = phonemeIds(before.phonemes === '' ? piece.phonemes : `${before.phonemes} ${piece.phonemes}`)
    const prefixes = guidedPrefixes(weights.conditioners, hidden, ids, conditions, negative)
    const asked = Math.ceil(maxSeconds * framesPerSecond)
    const cap = Math.ceil(overlong(piece.seconds) * framesPerSecond)
    const room = mostFrames(prefixes.conditional.rows.length / hidden, before.codes.frames)
    const maxFrames = Math.min(asked, cap, Math.max(1, room))
    const expected = fresh * framesPerSecond
    const expectedFrames = frames + Math.round(expected * (1 + piece.rest / piece.text.length))
    const minFrames = Math.min(maxFrames, Math.max(1, Math.floor(EARLIEST * expected)))
    const speech = { ...prefixes, cfgScale, maxFrames, audioPrefix: before.codes }
    const generate = async (how: SpeechOptions) => {
      const begun = performance.now()
      let told = frames - before.codes.frames
      const onFrames: SpeechOptions['onFrames'] = (codes) => {
        told += codes.frames
        if (told > frames) options.onProgress?.({ frames: told, expectedFrames, seconds: since() })
        how.onFrames?.(codes)
      }
      try {
        return await language.generate({ ...speech, sampling: { minFrames, ...sampling, seed } }, { ...how, onFrames })
      } finally {
        took.language += since(begun)
      }
    }
    const put = (samples: Float32Array): void => {
      took.first ||= since()
      outlet.put(samples, spoken.length)
    }
    const least = Math.min(FIRST, Math.ceil(expected / 4))
    const given = before.codes.frames
    const limit = cap < asked ? 'overlong' : 'length'
    const heard = { codec, context, owed, right, quiet, isQuiet }
    return sayPiece({ generate, given, limit, least, ...heard, put, signal })
  }

  let last: Before | undefined
  let next = await pieces.next()
  if (next.done) throw new InputError(`say: the text has nothing to say (${JSON.stringify(text)}), expected words`)
  while (!next.done) {
    const piece = next.value
    const first = spoken.length === 0
    next = await pieces.next()
    signal.throwIfAborted()
    options.onPhonemes?.(piece.phonemes)
    const fits = last && last.codes.frames / framesPerSecond + piece.seconds <= trainedSeconds
    const before = (fits && last) || { phonemes: '', codes: first ? audioPrefix : await quiet(QUIET_BEFORE) }
    const fresh = first ? Math.max(0, piece.seconds - OVERESTIMATE * already) : piece.seconds

    let drawn = seed
    let said = await say(piece, fresh, before, drawn)
    for (let retry = 0; said.codes.frames === 0 && retry < RETRIES && temperature > 0; retry++) {
      drawn = (drawn + 1) % 2 ** 32
      said = await say(piece, fresh, before, drawn)
    }
    const { codes, ended } = said
    const seconds = codes.frames / framesPerSecond
    spoken.push({ text: piece.text, phonemes: piece.phonemes, seconds, ended, seed: drawn })
    const warning = warningOf(spoken.at(-1)!, seed)
    if (warning) {
      warnings.push(warning)
      options.onWarning?.(warning)
    }
    if (codes.frames > 0) {
      const pause = next.done ? 0 : Math.round(piece.pause * framesPerSecond)
      const behind = await quiet(Math.max(right, pause - said.quiet))
      outlet.putCodes(codes)
      outlet.putCodes(behind)
      context = lastFrames(joinedCodes([context, codes, behind]), left + behind.frames)
      owed = behind.frames
      frames += codes.frames + behind.frames
      const own = joinedCodes([first ? audioPrefix : none, codes, behind])
      last = ended === 'eos' ? { phonemes: piece.phonemes, codes: own } : undefined
    }
    yield
  }
  if (frames === 0) throw new InputError(`say: the model gave no sound (${warnings.join('; ')}); try another seed`)
  const wave = await codec.decode(context.data, { signal })
  outlet.put(wave.slice((context.frames - owed) * hop), spoken.length - 1)
  const phonemes = spoken.map((piece) => piece.phonemes).join(' ')
  return {
    sampleRate,
    seconds: frames / framesPerSecond,
    pieces: spoken,
    phonemes,
    unknown: unknownSymbols(phonemes),
    seed,
    ended: spoken.find(({ ended }) => ended !== 'eos')?.ended ?? 'eos',
    warnings,
    took: { ...took, codec: Math.max(0, since() - took.language), all: since() },
  }
}

const lastFrames = ({ frames, data }: Codes, count: number): Codes =>
  frames <= count ? { frames, data } : { frames: count, data: data.slice(-CODEBOOKS * count) }
