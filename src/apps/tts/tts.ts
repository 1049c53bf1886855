import { untilAborted } from '../../device/abort.ts'
import type { Device } from '../../device/device.ts'
import { serial } from '../../device/serial.ts'
import { DeviceError } from '../../errors.ts'
import type { Codes } from '../../models/zonos/delay.ts'
import { literalPhonemes, type Phonemizer } from '../../text/phonemes.ts'
import { readText, type SayOptions } from './options.ts'
import { speak, type Voice } from './speak.ts'
import { type Outlet, type Speech, type SpeechReport, speechOf } from './speech.ts'

/** Text in, speech out. */
export interface Tts extends AsyncDisposable {
  readonly device: Device
  readonly sampleRate: number
  readonly framesPerSecond: number
  /**
   * Says a text: `await` it for all of the speech, or iterate over it for samples while the rest is made. A long text is
   * said in pieces, by sentences. Calls made together are answered first in, first out; one whose samples nobody takes
   * lets others go first.
   *
   * @throws InputError for a text or a setting that cannot be said; DeviceError; the signal's reason
   */
  say(text: string, options?: SayOptions): Speech
  /** Codes of earlier audio, for `audioPrefix`: mono samples at `sampleRate`. */
  encode(samples: Float32Array, options?: { readonly signal?: AbortSignal | undefined }): Promise<Codes>
  dispose(): Promise<void>
}

/** Frames of silence that are encoded to find the codes of quiet: those in the middle have nothing but it around them. */
const SILENT_FRAMES = 20

export function createTts(
  voice: Voice,
  device: Device,
  openPhonemizer: () => Promise<Phonemizer>,
  release: () => void,
): Tts {
  const { codec } = voice
  const { sampleRate, hop, codebooks } = codec.config
  const disposal = new AbortController()
  const queue = serial()
  const calls = new Set<Promise<unknown>>()
  let phonemizer: Promise<Phonemizer> | undefined
  let silence: Promise<Codes> | undefined
  let disposing: Promise<void> | undefined

  /** Words need espeak-ng; IPA between slashes does not. */
  async function phonemesOf(written: string, options: SayOptions): Promise<string> {
    const text = readText(written, options)
    const literal = literalPhonemes(text)
    if (literal !== undefined) return literal
    phonemizer ??= openPhonemizer()
    phonemizer.catch(() => {
      phonemizer = undefined // may be installed by the next time
    })
    return (await phonemizer).phonemes(text, options.language ?? 'en-us')
  }

  async function encode(samples: Float32Array, signal?: AbortSignal): Promise<Codes> {
    const data = await codec.encode(samples, { signal })
    return { frames: data.length / codebooks.count, data: Uint16Array.from(data) }
  }

  /** The codes of so many quiet frames. */
  async function quiet(frames: number): Promise<Codes> {
    silence ??= encode(new Float32Array(SILENT_FRAMES * hop))
    silence.catch(() => {
      silence = undefined
    })
    const { data } = await silence
    const middle = data.subarray((SILENT_FRAMES / 2) * codebooks.count).subarray(0, codebooks.count)
    return {
      frames,
      data: Uint16Array.from({ length: frames * codebooks.count }, (_, i) => middle[i % middle.length]!),
    }
  }

  async function say(text: string, options: SayOptions, outlet: Outlet, signal: AbortSignal): Promise<SpeechReport> {
    const pieces = speak(voice, text, options, { phonemesOf, quiet, outlet, signal })
    const sayWhileRoom = async () => {
      let step = await pieces.next()
      while (!step.done && !outlet.full()) step = await pieces.next()
      return step
    }
    for (;;) {
      const step = await queue(sayWhileRoom, signal)
      if (step.done) return step.value
      await untilAborted(outlet.room(), signal)
    }
  }

  /** One controller per call, which the caller's signals and dispose() abort. The caller is told at once. */
  async function call<A>(callers: (AbortSignal | undefined)[], work: (signal: AbortSignal) => Promise<A>): Promise<A> {
    disposal.signal.throwIfAborted()
    const abort = new AbortController()
    const signals = [...callers, disposal.signal].filter((signal) => signal !== undefined)
    const forward = (): void => abort.abort(signals.find(({ aborted }) => aborted)!.reason)
    for (const s of signals) s.addEventListener('abort', forward)
    if (signals.some(({ aborted }) => aborted)) forward()
    const done = work(abort.signal)
    calls.add(done)
    const end = (): void => {
      calls.delete(done)
      for (const s of signals) s.removeEventListener('abort', forward)
    }
    done.then(end, end)
    return untilAborted(done, abort.signal)
  }

  const tts: Tts = {
    device,
    sampleRate,
    framesPerSecond: sampleRate / hop,
    say: (text, options = {}) =>
      speechOf(
        sampleRate,
        (outlet, left) => call([options.signal, left], (signal) => say(text, options, outlet, signal)),
        options.signal,
      ),
    encode: (samples, { signal } = {}) => call([signal], (signal) => queue(() => encode(samples, signal), signal)),
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
