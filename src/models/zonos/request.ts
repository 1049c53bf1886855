import { InputError } from '../../errors.ts'
import { CODEBOOKS, EOS, type ZonosConfig } from './config.ts'
import { type Codes, gridWidth } from './delay.ts'
import type { Prefix } from './prefix.ts'
import { type Sampling, samplingOf } from './sampler.ts'

/** What is to be said, and how. */
export interface Speech {
  readonly conditional: Prefix
  /** As long as the conditional one; not needed where cfgScale is 1. */
  readonly unconditional?: Prefix | undefined
  /** Weight of the conditional logits against the unconditional ones. Default 2; 1 runs the conditional row alone. */
  readonly cfgScale?: number | undefined
  /** New frames at most. */
  readonly maxFrames: number
  /** Codes of earlier audio that is continued; the result begins with them. */
  readonly audioPrefix?: Codes | undefined
  readonly sampling?: Partial<Sampling> | undefined
}

/** Speech, checked. */
export interface Request {
  readonly prefixes: readonly Prefix[] // conditional, unconditional
  readonly length: number // tokens of a prefix
  readonly given: Codes
  readonly wanted: number
  readonly guidance: number
  readonly sampling: Sampling
}

/** Positions that the reference has rotary angles for. */
const MOST_POSITIONS = 16384

/** New frames that have room behind a prefix of so many tokens and the frames that are given. */
export const mostFrames = (tokens: number, given: number): number => MOST_POSITIONS - tokens - gridWidth(given, 0)

/** @throws InputError for what is no scale of guidance */
export function expectScale(cfgScale: number): void {
  if (!(cfgScale >= 0 && cfgScale < Number.POSITIVE_INFINITY))
    throw new InputError(`speech: cfgScale is ${cfgScale}, expected a number from 0`)
}

/** @throws InputError for what cannot be said */
export function requestOf(speech: Speech, c: ZonosConfig): Request {
  const { conditional, unconditional, cfgScale = 2, maxFrames, audioPrefix } = speech
  expectScale(cfgScale)
  if (!(Number.isInteger(maxFrames) && maxFrames > 0))
    throw new InputError(`speech: maxFrames is ${maxFrames}, expected a positive integer`)
  if (cfgScale !== 1 && !unconditional)
    throw new InputError(`speech: cfgScale is ${cfgScale} and there is no unconditional prefix; give one, or scale 1`)
  const prefixes = cfgScale === 1 ? [conditional] : [conditional, unconditional!]
  const length = conditional.rows.length / c.hidden
  const wrong = prefixes.find(({ rows }) => rows.length !== length * c.hidden)
  if (wrong || !Number.isInteger(length) || length === 0)
    throw new InputError(
      `speech: prefixes have ${prefixes.map(({ rows }) => rows.length)} values, expected equal multiples of ${c.hidden}`,
    )
  const given = audioPrefix ?? { frames: 0, data: new Uint16Array() }
  if (given.data.length !== given.frames * CODEBOOKS || given.data.some((code) => code >= EOS))
    throw new InputError(`speech: audioPrefix is not ${given.frames} frames of ${CODEBOOKS} codes from 0 to ${EOS - 1}`)
  const most = mostFrames(length, given.frames)
  if (maxFrames > most)
    throw new InputError(
      `speech: maxFrames is ${maxFrames}, at most ${most} behind a prefix of ${length} tokens; say it in pieces`,
      'too_long',
    )
  return { prefixes, length, given, wanted: maxFrames, guidance: cfgScale, sampling: samplingOf(speech.sampling) }
}
