import type { Device } from '../../device/device.ts'
import { serial } from '../../device/serial.ts'
import { DeviceError, InputError } from '../../errors.ts'
import type { DacSession } from '../../models/dac/session.ts'
import { guidedPrefixes } from '../../models/zonos/conditioning.ts'
import type { Conditions } from '../../models/zonos/conditions.ts'
import type { Codes } from '../../models/zonos/delay.ts'
import type { Sampling } from '../../models/zonos/sampler.ts'
import { mostFrames } from '../../models/zonos/request.ts'
import type { ZonosSession } from '../../models/zonos/session.ts'
import { randomVoice } from '../../models/zonos/voice.ts'
import type { ZonosWeights } from '../../models/zonos/weights.ts'
import { applyDictionary, type Pronunciations } from '../../text/dictionary.ts'
import { type NumberStyle, numberStyleOf, readNumbers } from '../../text/numbers.ts'
import { literalPhonemes, type Phonemizer } from '../../text/phonemes.ts'
import { hasSound, phonemeIds, unknownSymbols } from '../../text/symbols.ts'

export interface SayOptions extends Conditions {
  /** Seed of the voice where there is no `speaker`: the same seed, the same voice. Default 0. */
  readonly voice?: number | undefined
  /** What the speech is to be unlike, instead of like nothing in particular (classifier-free guidance). */
  readonly negative?: Conditions | undefined
  /** How far it is to be from that. Default 2; 1 leaves the comparison out and is faster. */
  readonly cfgScale?: number | undefined
  readonly sampling?: Partial<Sampling> | undefined
  /** How numbers are read; the words of 'spoken' and 'upstream' are English. Default: 'spoken' in English, else 'as written'. */
  readonly numbers?: NumberStyle | undefined
  /** Words, and the /IPA/ or other words that are said for them; those in lower case are found in any case. */
  readonly dictionary?: Pronunciations | undefined
  /** Seconds at most, 30 by default. */
  readonly maxSeconds?: number | undefined
  /** Codes of earlier audio that is continued; its sound is not part of the result. */
  readonly audioPrefix?: Codes | undefined
  readonly signal?: AbortSignal | undefined
  /** What is going to be said, as soon as it is known. */
  readonly onPhonemes?: ((phonemes: string) => void) | undefined
  readonly onProgress?: ((progress: SpeechProgress) => void) | undefined
}

export interface SpeechProgress {
  readonly frames: number
  /** By the number of phonemes and the speaking rate: speech of usual speed has about so many. */
  readonly expectedFrames: number
  readonly seconds: number // since it began
}

export interface Spoken {
  /** Mono, in [-1, 1]. */
  readonly samples: Float32Array
  readonly sampleRate: number
  readonly codes: Codes
  readonly phonemes: string
  /** Symbols of `phonemes` that the model does not know. */
  readonly unknown: readonly string[]
  readonly seed: number
  /** By itself, or because `maxSeconds` were made. */
  readonly ended: 'eos' | 'length'
  /** Seconds that it took: of the language model, of the codec, of all. */
  readonly took: { readonly language: number; readonly codec: number; readonly all: number }
}

/** Text in, speech out. */
export interface Tts extends AsyncDisposable {
  readonly device: Device
  readonly sampleRate: number
  readonly framesPerSecond: number
  /**
   * Says a text. Calls made together are answered first in, first out.
   *
   * @throws InputError for a text or a setting that cannot be said; DeviceError; the signal's reason
   */
  say(text: string, options?: SayOptions): Promise<Spoken>
  /** Codes of earlier audio, for `audioPrefix`: mono samples at `sampleRate`. */
  encode(samples: Float32Array, options?: { readonly signal?: AbortSignal | undefined }): Promise<Codes>
  dispose(): Promise<void>
}

/** What speaks, on one device. */
export interface Voice {
  readonly language: ZonosSession
  readonly weights: ZonosWeights
  readonly codec: DacSession
}

const DEFAULT_SECONDS = 30
const DEFAULT_RATE = 15 // phonemes a second, as upstream

export function createTts(
  { language, weights, codec }: Voice,
  device: Device,
  openPhonemizer: () => Promise<Phonemizer>,
  release: () => void,
): Tts {
  const { sampleRate, hop, codebooks } = codec.config
  const framesPerSecond = sampleRate / hop
  const disposal = new AbortController()
  const queue = serial()
  const calls = new Set<Promise<unknown>>()
  let phonemizer: Promise<Phonemizer> | undefined
  let disposing: Promise<void> | undefined

  /** Words need espeak-ng; IPA between slashes does not. */
  async function phonemesOf(written: string, options: SayOptions): Promise<string> {
    const code = options.language ?? 'en-us'
    const { numbers = numberStyleOf(code), dictionary = {} } = options
    const text = readNumbers(applyDictionary(written, dictionary), numbers)
    const literal = literalPhonemes(text)
    if (literal !== undefined) return literal
    phonemizer ??= openPhonemizer()
    phonemizer.catch(() => {
      phonemizer = undefined // may be installed by the next time
    })
    return (await phonemizer).phonemes(text, code)
  }

  async function say(text: string, options: SayOptions, signal: AbortSignal): Promise<Spoken> {
    const { voice = 0, negative, cfgScale, sampling, maxSeconds = DEFAULT_SECONDS, audioPrefix } = options
    if (!(maxSeconds > 0 && Number.isFinite(maxSeconds)))
      throw new InputError(`say: maxSeconds is ${maxSeconds}, expected a positive number`)
    if (typeof text !== 'string') throw new InputError(`say: the text is ${typeof text}, expected a string`)
    const start = performance.now()
    const since = (from = start): number => (performance.now() - from) / 1000
    const conditions = conditionsOf(options)
    const phonemes = await phonemesOf(text, options)
    signal.throwIfAborted()
    if (!hasSound(phonemes)) throw new InputError(`say: the text has nothing to say ("${phonemes}"), expected words`)
    options.onPhonemes?.(phonemes)
    const ids = phonemeIds(phonemes)
    const width = weights.conditioners.find(({ config }) => config.name === 'speaker')?.config
    const speaker =
      conditions.speaker === undefined && width?.kind === 'passthrough'
        ? randomVoice(voice, width.width)
        : conditions.speaker
    const given = { ...conditions, ...(speaker !== undefined && { speaker }) }
    const prefixes = guidedPrefixes(weights.conditioners, language.config.hidden, ids, given, negative)
    const expectedFrames = Math.round((ids.length / (options.speakingRate ?? DEFAULT_RATE)) * framesPerSecond)
    const maxFrames = Math.ceil(maxSeconds * framesPerSecond)
    const before = audioPrefix?.frames ?? 0
    const most = mostFrames(prefixes.conditional.rows.length / language.config.hidden, before)
    if (maxFrames > most)
      throw new InputError(
        `say: maxSeconds is ${maxSeconds}, at most ${Math.floor(most / framesPerSecond)} of this text; say it in pieces`,
        'too_long',
      )
    let frames = 0
    const spoken = await language.generate(
      { ...prefixes, cfgScale, maxFrames, audioPrefix, sampling },
      {
        signal,
        onFrames(codes) {
          frames += codes.frames
          options.onProgress?.({ frames, expectedFrames, seconds: since() })
        },
      },
    )
    const decoding = performance.now()
    const all = spoken.codes
    if (all.frames === before) throw new InputError('say: the model ended before the first frame; try another seed')
    const wave = await codec.decode(all.data, { signal })
    const samples = wave.subarray(before * hop)
    const took = { language: (decoding - start) / 1000, codec: since(decoding), all: since() }
    const { seed = 0 } = sampling ?? {}
    const unknown = unknownSymbols(phonemes)
    return { samples, sampleRate, codes: all, phonemes, unknown, seed, ended: spoken.ended, took }
  }

  /** One controller per call, which the caller's signal and dispose() abort. */
  async function call<A>(signal: AbortSignal | undefined, work: (signal: AbortSignal) => Promise<A>): Promise<A> {
    disposal.signal.throwIfAborted()
    const abort = new AbortController()
    const forward = (): void => abort.abort(signal?.aborted ? signal.reason : disposal.signal.reason)
    const signals = [signal, disposal.signal]
    for (const s of signals) s?.addEventListener('abort', forward)
    if (signal?.aborted) forward()
    const done = queue(() => work(abort.signal), abort.signal)
    calls.add(done)
    try {
      return await done
    } finally {
      calls.delete(done)
      for (const s of signals) s?.removeEventListener('abort', forward)
    }
  }

  const tts: Tts = {
    device,
    sampleRate,
    framesPerSecond,
    say: (text, options = {}) => call(options.signal, (signal) => say(text, options, signal)),
    encode: (samples, { signal } = {}) =>
      call(signal, async (signal) => {
        const data = await codec.encode(samples, { signal })
        return { frames: data.length / codebooks.count, data: Uint16Array.from(data) }
      }),
    dispose() {
      disposing ??= (async () => {
        disposal.abort(new DeviceError('disposed', 'say: the model was disposed of; load it again'))
        await Promise.allSettled([...calls])
        release()
      })()
      return disposing
    },
    [Symbol.asyncDispose]: () => tts.dispose(),
  }
  return tts
}

/** The conditions among the options. */
function conditionsOf(options: SayOptions): Conditions {
  const { voice: _v, negative: _n, cfgScale: _c, sampling: _s, maxSeconds: _m, ...rest } = options
  const { numbers: _u, dictionary: _d, audioPrefix: _a, signal: _g, ...more } = rest
  const { onPhonemes: _h, onProgress: _p, ...conditions } = more
  return conditions
}
