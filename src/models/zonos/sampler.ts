import { InputError } from '../../errors.ts'
import type { Sampling as SamplingValues } from '../../kernels/sample_codes.ts'

/** How codes are drawn (zonos.md 5.4). A filter that is 0 is off. */
export interface Sampling {
  /** 0: the most probable code always. Default 1. */
  readonly temperature: number
  /** Drops codes less probable than this part of the most probable one's. Default 0.1. */
  readonly minP: number
  /** Keeps the most probable codes that together reach this. Default 0. */
  readonly topP: number
  /** Keeps so many of the most probable codes. Default 0. */
  readonly topK: number
  /** Unified sampler, where linear > 0: p ← softmax(ln p (linear + H confidence) - (ln p)² quadratic). Default 0. */
  readonly linear: number
  readonly confidence: number
  readonly quadratic: number
  /** Weakens codes that the last `repetitionWindow` columns hold. Default 3 over 2. */
  readonly repetitionPenalty: number
  readonly repetitionWindow: number
  /** The same seed gives the same codes on the same device. An integer from 0 to 2^32 - 1. Default 0. */
  readonly seed: number
  /** New frames before the end may come. Default 1: something is said. */
  readonly minFrames: number
  /**
   * How the last 9 columns of a row that does not end by itself are written: each codebook its own code, or shifted as
   * the reference does (zonos.md 5.2). Default 'aligned'.
   */
  readonly writing: 'aligned' | 'upstream'
}

export const defaultSampling: Sampling = {
  temperature: 1,
  minP: 0.1,
  topP: 0,
  topK: 0,
  linear: 0,
  confidence: 0,
  quadratic: 0,
  repetitionPenalty: 3,
  repetitionWindow: 2,
  seed: 0,
  minFrames: 1,
  writing: 'aligned',
}

/** The settings with defaults for what is left out. InputError names one that is out of range. */
export function samplingOf(settings: Partial<Sampling> = {}): Sampling {
  const given = Object.entries(settings).filter(([, value]) => value !== undefined)
  const s: Sampling = { ...defaultSampling, ...Object.fromEntries(given) }
  const unknown = Object.keys(s).find((key) => !(key in defaultSampling))
  if (unknown) throw new InputError(`sampling: has ${unknown}, expected ${Object.keys(defaultSampling).join(', ')}`)
  const check = (key: keyof Sampling, fits: (value: number) => boolean, expected: string): void => {
    const value = s[key]
    if (typeof value === 'number' && Number.isFinite(value) && fits(value)) return
    throw new InputError(`sampling: ${key} is ${value}, expected ${expected}`)
  }
  const count = (n: number): boolean => Number.isInteger(n) && n >= 0
  check('temperature', (n) => n >= 0, 'at least 0')
  for (const key of ['minP', 'topP'] as const) check(key, (n) => n >= 0 && n <= 1, '0 to 1')
  for (const key of ['topK', 'minFrames', 'repetitionWindow'] as const) check(key, count, 'an integer from 0 on')
  for (const key of ['linear', 'confidence', 'quadratic'] as const) check(key, () => true, 'a number')
  check('repetitionPenalty', (n) => n > 0, 'more than 0')
  check('seed', (n) => count(n) && n < 2 ** 32, 'an integer from 0 to 4294967295')
  if (s.writing !== 'aligned' && s.writing !== 'upstream')
    throw new InputError(`sampling: writing is ${s.writing}, expected aligned or upstream`)
  return s
}

/** What the kernel reads. The first column of a row has no penalty. */
export const samplingValues = (s: Sampling, guidance: number, first: boolean): SamplingValues => ({
  ...s,
  guidance,
  penalty: s.repetitionPenalty,
  window: first ? 0 : s.repetitionWindow,
})
