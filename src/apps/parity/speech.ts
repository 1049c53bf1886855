import type { Device } from '../../device/device.ts'
import { InputError } from '../../errors.ts'
import { type LoadedDac, loadDac } from '../../models/dac/load.ts'
import { guidedPrefixes } from '../../models/zonos/conditioning.ts'
import { CODEBOOKS, CODES } from '../../models/zonos/config.ts'
import type { Codes } from '../../models/zonos/delay.ts'
import { forcedLogits } from '../../models/zonos/forced.ts'
import { openZonos } from '../../models/zonos/load.ts'
import { zonosSession } from '../../models/zonos/session.ts'
import { phonemeIds } from '../../text/symbols.ts'
import type { Files, Source } from '../../weights/source.ts'
import { cosine, greatest, largestDifference, siSdr } from './measures.ts'

export type Where = string | URL | Files | readonly File[] | Source

export interface SpeechParityOptions {
  /** A Zonos checkpoint, and its codec. */
  readonly model: Where
  readonly codec: Where
  /** In IPA. */
  readonly phonemes?: string | undefined
  /** Frames of the utterance at most, 86.13 a second. Default 96. */
  readonly frames?: number | undefined
  readonly signal?: AbortSignal | undefined
  /** Hears what is being computed. */
  readonly onStep?: ((step: string) => void) | undefined
}

/** How near a device is to the reference. */
export interface SpeechDrift {
  readonly device: string
  /** Of its operands. */
  readonly precision: 'f32' | 'f16'
  readonly logits: {
    /** Of the 1025 logits of a code with those of the reference, over all codes. */
    readonly meanCosine: number
    readonly minCosine: number
    readonly largestDifference: number
    /** Share of the codes of each codebook for which the same one is the most probable. */
    readonly agreement: readonly number[]
  }
  readonly wave: { readonly siSdrDb: number; readonly largestDifference: number }
  /** What it should be and is not. */
  readonly broken: readonly string[]
}

export interface SpeechParity {
  readonly reference: string
  readonly frames: number
  readonly seconds: number
  readonly drifts: readonly SpeechDrift[]
}

/** Of a device that computes in f32: the same formulas, sums in another order. */
export const LARGEST_F32_DIFFERENCE = 1e-4
/** Of a device with f16 operands. */
export const LEAST_F16_COSINE = 0.9995

const PHONEMES = 'ðə vˈɜːdɪkt ɪz bˈɪlɪŋ.'
const FRAMES = 96
/** Another voice says something else; guidance is what people speak with. */
const SPEECH = { cfgScale: 2, sampling: { seed: 1 } }

/**
 * An utterance that the reference says, said again by each device with the reference's codes: logits of every code had
 * all before it been the reference's (teacher forcing), with guidance; and the samples of the codes.
 *
 * @throws InputError for frames that are no positive integer; WeightsError; DeviceError; the signal's reason
 */
export async function speechParity(
  reference: Device,
  devices: readonly Device[],
  options: SpeechParityOptions,
): Promise<SpeechParity> {
  const { frames = FRAMES, onStep } = options
  if (!(Number.isInteger(frames) && frames > 0))
    throw new InputError(`parity: frames is ${frames}, expected a positive integer`)
  onStep?.('the reference speaks')
  const want = await said(reference, options)
  const drifts: SpeechDrift[] = []
  for (const device of devices) {
    onStep?.(`${device.report.name}, ${device.target.operand}`)
    drifts.push(driftOf(device, await said(device, options, want.codes), want))
  }
  const seconds = want.wave.length / want.sampleRate
  return { reference: reference.report.line, frames: want.codes.frames, seconds, drifts }
}

interface Said {
  readonly codes: Codes
  readonly logits: readonly Float32Array[] // of each column of the delayed grid from 1 on, [9 · 1025]
  readonly wave: Float32Array
  readonly sampleRate: number
}

/** What a device makes of codes; of its own where there are none. */
async function said(device: Device, options: SpeechParityOptions, codes?: Codes): Promise<Said> {
  const { phonemes = PHONEMES, frames = FRAMES, signal } = options
  const { config, load } = await openZonos(options.model, { signal })
  const { weights, release } = await load({ device, signal })
  let codec: LoadedDac | undefined
  try {
    codec = await loadDac(options.codec, { device, signal })
    const speech = { ...guidedPrefixes(weights.conditioners, config.hidden, phonemeIds(phonemes)), ...SPEECH }
    if (!codes) {
      const session = zonosSession(device, config, weights)
      try {
        codes = (await session.generate({ ...speech, maxFrames: frames }, { signal })).codes
      } finally {
        session.dispose()
      }
    }
    const logits: Float32Array[] = []
    for await (const of of forcedLogits(device, config, weights, { ...speech, codes }, signal)) logits.push(of)
    const wave = await codec.decode(codes.data, { signal })
    return { codes, logits, wave, sampleRate: codec.config.sampleRate }
  } finally {
    codec?.dispose()
    release()
  }
}

function driftOf(device: Device, got: Said, want: Said): SpeechDrift {
  const precision = device.target.operand
  const cosines: number[] = []
  let most = 0
  const same = new Array<number>(CODEBOOKS).fill(0)
  const { frames } = want.codes
  for (let k = 0; k < CODEBOOKS; k++)
    for (let frame = 0; frame < frames; frame++) {
      const of = ({ logits }: Said) => logits[frame + k]!.subarray(k * CODES, (k + 1) * CODES) // of column frame + k + 1
      const [a, b] = [of(got), of(want)]
      cosines.push(cosine(a, b))
      most = Math.max(most, largestDifference(a, b))
      if (greatest(a) === greatest(b)) same[k]!++
    }
  const logits = {
    meanCosine: cosines.reduce((sum, c) => sum + c, 0) / cosines.length,
    minCosine: cosines.reduce((least, c) => Math.min(least, c)),
    largestDifference: most,
    agreement: same.map((n) => n / frames),
  }
  const wave = { siSdrDb: siSdr(got.wave, want.wave), largestDifference: largestDifference(got.wave, want.wave) }
  return { device: device.report.line, precision, logits, wave, broken: brokenBy(precision, logits, wave) }
}

function brokenBy(precision: 'f32' | 'f16', logits: SpeechDrift['logits'], wave: SpeechDrift['wave']): string[] {
  const broken: string[] = []
  const expect = (what: string, value: number, holds: boolean, bound: string): void => {
    if (!holds) broken.push(`${what} is ${value.toPrecision(6)}, expected ${bound}`)
  }
  if (precision === 'f16') {
    const bound = `at least ${LEAST_F16_COSINE}`
    expect('the least cosine of logits', logits.minCosine, logits.minCosine >= LEAST_F16_COSINE, bound)
    return broken
  }
  for (const [name, value] of [
    ['logit', logits.largestDifference],
    ['sample', wave.largestDifference],
  ] as const) {
    const bound = `at most ${LARGEST_F32_DIFFERENCE}`
    expect(`the largest difference of a ${name}`, value, value <= LARGEST_F32_DIFFERENCE, bound)
  }
  return broken
}
