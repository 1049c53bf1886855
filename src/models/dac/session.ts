import type { Device, Profile, Program } from '../../device/device.ts'
import { allFinite } from '../../device/formats.ts'
import { type Recorded, recordedProgram } from '../../device/recorded.ts'
import { DeviceError, InputError, WeightsError } from '../../errors.ts'
import { transposedMissing } from '../../kernels/conv1d.ts'
import { variantProbes } from '../../kernels/lib/probes.ts'
import { ahead } from '../../weights/chunks.ts'
import type { DacConfig } from './config.ts'
import { decoderGraph } from './decoder.ts'
import { encoderGraph } from './encoder.ts'
import type { DacWeights } from './weights.ts'
import { type Context, decoderContext, encoderContext, type Window, windows } from './windows.ts'

export interface DacOptions {
  /** Heard between and within runs; what is pending rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined
  /** Of every run of the decoder. */
  readonly onProfile?: ((profile: Profile) => void) | undefined
}

/** Codes [frames, codebooks] in row-major order, each 0 to the codebook's size − 1. */
export type Codes = ArrayLike<number>

/** A loaded codec on one device. Signals of any length run in pieces of bounded memory. */
export interface DacSession {
  readonly config: DacConfig
  /**
   * Mono samples in [-1, 1] at `config.sampleRate`, `config.hop` for every frame.
   *
   * @throws InputError for no frames, a piece of a frame, or a code out of range
   */
  decode(codes: Codes, options?: DacOptions): Promise<Float32Array>
  /**
   * The same samples piece by piece, each as soon as the frames it depends on have come. The last ones of `source` come
   * out when it ends.
   */
  stream(source: AsyncIterable<Codes> | Iterable<Codes>, options?: DacOptions): AsyncGenerator<Float32Array>
  /**
   * Codes [frames, codebooks] of mono samples at `config.sampleRate`; zeros fill up the last frame.
   *
   * @throws InputError for no samples, or one that is not a finite number
   */
  encode(audio: Float32Array, options?: DacOptions): Promise<Uint32Array>
  /** The recorded programs: dispatches, the most frames of a run. */
  programs(): Promise<{ readonly decoder: Program; readonly encoder: Program }>
}

/** Frames of a run: 3 s, in which the context is a twelfth; 50 MB for each value of the published model. */
const RUN_FRAMES = 256

export function dacSession(device: Device, c: DacConfig, w: DacWeights): DacSession {
  const { count, size } = c.codebooks
  const decoder = recordedProgram(device, (target) => decoderGraph(target, w), { probes: variantProbes })
  const encoder = recordedProgram(device, (target) => encoderGraph(target, c, w), { probes: variantProbes })
  const [decoderNeeds, encoderNeeds] = [decoderContext(c), encoderContext(c)]
  const missing = c.decoder.strides.reduce(transposedMissing, 0) // samples that a run is short of

  /** Samples of a window; `codes` begin at frame `first`. */
  async function decodeWindow(codes: Codes, first: number, { begin, end, from, to }: Window, options: DacOptions) {
    const T = end - begin
    const ofBook = (i: number) => Uint32Array.from({ length: T }, (_, t) => codes[(begin - first + t) * count + i]!)
    const inputs = Object.fromEntries(Array.from({ length: count }, (_, i) => [`codes.${i}`, ofBook(i)]))
    const { wave } = await decoder.run(inputs, countsOf(T), options)
    if (!allFinite(wave!))
      throw new WeightsError(
        'format',
        'decode: gives samples that are not finite numbers; the checkpoint holds NaN or infinite weights',
      )
    return wave!.subarray((from - begin) * c.hop, Math.min((to - begin) * c.hop, T * c.hop - missing))
  }

  async function encodeWindow(audio: Float32Array, { begin, end, from, to }: Window, { signal }: DacOptions) {
    const T = end - begin
    const wave = new Float32Array(T * c.hop)
    wave.set(audio.subarray(begin * c.hop, end * c.hop))
    const outputs = await encoder.run({ wave }, countsOf(T), { signal })
    const codes = new Uint32Array((to - from) * count)
    for (let i = 0; i < count; i++)
      integers(outputs[`codes.${i}`]!)
        .subarray(from - begin, to - begin)
        .forEach((code, t) => {
          codes[t * count + i] = code
        })
    return codes
  }

  function checkCodes(codes: Codes, where: string): void {
    if (codes.length % count !== 0)
      throw new InputError(`${where}: codes has ${codes.length} values, expected frames of ${count} codes each`)
    for (let i = 0; i < codes.length; i++)
      if (!(Number.isInteger(codes[i]) && codes[i]! >= 0 && codes[i]! < size))
        throw new InputError(
          `${where}: frame ${Math.floor(i / count)} has code ${codes[i]} of codebook ${i % count}, expected 0 to ${size - 1}`,
        )
  }

  return {
    config: c,
    async decode(codes, options = {}) {
      checkCodes(codes, 'decode')
      const frames = codes.length / count
      if (frames === 0) throw new InputError('decode: codes has no frames, expected at least one')
      const most = await mostFrames(decoder, decoderNeeds)
      const pieces = windows(0, frames, frames, decoderNeeds, most)
      return join(new Float32Array(frames * c.hop - missing), pieces, (p) => decodeWindow(codes, 0, p, options))
    },

    async *stream(source, options = {}) {
      const most = await mostFrames(decoder, decoderNeeds)
      let codes: number[] = [] // from frame `first` on: what is still needed
      let [first, done] = [0, 0]
      const ready = async function* (to: number, frames: number) {
        const pieces = windows(done, to, frames, decoderNeeds, most)
        const [held, start] = [codes, first]
        yield* inOrder(pieces, (p) => decodeWindow(held, start, p, options))
        done = Math.max(done, to)
        const unneeded = Math.max(0, done - decoderNeeds.left) - first
        codes = codes.slice(unneeded * count)
        first += unneeded
      }
      for await (const more of source) {
        options.signal?.throwIfAborted()
        checkCodes(more, 'stream')
        codes = codes.concat(Array.from(more))
        const frames = first + codes.length / count
        yield* ready(frames - decoderNeeds.right, Number.POSITIVE_INFINITY)
      }
      const frames = first + codes.length / count
      if (frames === 0) throw new InputError('stream: the source had no frames, expected at least one')
      yield* ready(frames, frames)
    },

    async encode(audio, options = {}) {
      const wrong = audio.findIndex((sample) => !Number.isFinite(sample))
      if (audio.length === 0) throw new InputError('encode: audio has no samples, expected at least one')
      if (wrong >= 0) throw new InputError(`encode: sample ${wrong} is ${audio[wrong]}, expected a finite number`)
      const frames = Math.ceil(audio.length / c.hop)
      const most = await mostFrames(encoder, encoderNeeds)
      const pieces = windows(0, frames, frames, encoderNeeds, most)
      return join(new Uint32Array(frames * count), pieces, (p) => encodeWindow(audio, p, options))
    },

    programs: async () => ({ decoder: await decoder.program(), encoder: await encoder.program() }),
  }
}

/** Runs pieces in order; the device need not wait for the host between two of them. */
const inOrder = <A>(pieces: readonly Window[], run: (piece: Window) => Promise<A>): AsyncGenerator<A> =>
  ahead(
    pieces.map((piece) => () => run(piece)),
    2,
  )

/** What the pieces give, one after another. */
async function join<A extends Float32Array | Uint32Array>(
  whole: A,
  pieces: readonly Window[],
  run: (piece: Window) => Promise<A>,
): Promise<A> {
  let at = 0
  for await (const part of inOrder(pieces, run)) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

const countsOf = (T: number) => ({ T, S: 1, C: 1, R: 1 })

/** Frames of a run on this device. */
async function mostFrames(recorded: Recorded, { left, right }: Context): Promise<number> {
  const { maxTokens } = await recorded.program()
  if (maxTokens > left + right) return Math.min(maxTokens, RUN_FRAMES)
  throw new DeviceError(
    'limit',
    `dac: a run takes ${maxTokens} frames on this device, expected more than the ${left + right} of a frame's context`,
  )
}

/** Integers that came back as the bits of floats; a CPU gives them as they are. */
const integers = (values: Float32Array): Uint32Array =>
  (values as unknown) instanceof Uint32Array
    ? (values as unknown as Uint32Array)
    : new Uint32Array(values.buffer, values.byteOffset, values.length)
