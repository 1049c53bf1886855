import type { SpokenPiece } from './speech.ts'

/**
 * How a piece of speech ended: by itself ('eos'), because `maxSeconds` were made ('length'), or by a guard: it went on
 * far beyond its text ('overlong'), said the same over and over ('loop'), or nothing at all ('silence').
 */
export type Ended = 'eos' | 'length' | 'overlong' | 'loop' | 'silence'

/** No end is heard before this part of the expected length (zonos.md 5.7); what is said takes 0.6 to 1 of it. */
export const EARLIEST = 0.4
/** Seconds that a piece of so many expected ones may take. */
export const overlong = (expected: number): number => 2 * expected + 1
/** Seconds of quiet, after which nothing more is waited for: the longest pauses of speech are shorter. */
export const MOST_QUIET = 1.5
/** A piece that said nothing is tried so many times more, with the seeds that follow. */
export const RETRIES = 3

const LONGEST_LOOP = 100 // frames, 1.2 s: a phrase
const LOOPED = 172 // frames, 2 s: longer than the quiet that is allowed, which is a loop of one frame
const SAME = 0.8

/**
 * Tells when frames have become a loop: of the last 2 s four in five have the first codebook's code of the frame one
 * period earlier, for some period. Speech reaches one in three over half a second, and one in six over a second.
 */
export function loopWatch(): (frame: ArrayLike<number>) => boolean {
  const codes: number[] = []
  const same = new Uint16Array(LONGEST_LOOP + 1) // by period: of the last LOOPED frames
  return (frame) => {
    const t = codes.push(frame[0]!) - 1
    let looped = false
    for (let period = 1; period <= LONGEST_LOOP; period++) {
      const left = t - LOOPED
      if (codes[t] === codes[t - period]) same[period]!++
      if (left >= period && codes[left] === codes[left - period]) same[period]!--
      if (same[period]! >= SAME * LOOPED) looped = true
    }
    return looped
  }
}

const SILENT = 1e-3 // -60 dB of full scale
const QUIET = 1e-2 // -40 dB of the loudest frame

/** Tells whether a frame of samples is quiet, beside the loudest one so far. */
export function quietness(): (samples: Float32Array) => boolean {
  let loudest = 0
  return (samples) => {
    const level = Math.sqrt(samples.reduce((sum, x) => sum + x * x, 0) / samples.length)
    loudest = Math.max(loudest, level)
    return level < Math.max(SILENT, QUIET * loudest)
  }
}

/** What was done about a piece; undefined where nothing was. `seed` is the one that was asked for. */
export function warningOf(piece: SpokenPiece, seed: number): string | undefined {
  const [begin, rest] = [piece.text.slice(0, 40), piece.text.slice(40)]
  const what = `say: "${begin}${rest === '' ? '' : '…'}"`
  const seeds = piece.seed === seed ? `seed ${seed}` : `the seeds ${seed} to ${piece.seed}`
  if (piece.seconds === 0) return `${what} gave no sound with ${seeds} and was left out`
  const acts = [
    ...(piece.seed === seed ? [] : [`gave no sound with seed ${seed} and was said with ${piece.seed}`]),
    ...(piece.ended in reasons ? [`${reasons[piece.ended]!} and was ended after ${piece.seconds.toFixed(1)} s`] : []),
  ]
  return acts.length === 0 ? undefined : `${what} ${acts.join(', ')}`
}

const reasons: Partial<Record<Ended, string>> = {
  overlong: 'went on beyond its text',
  loop: 'repeated itself',
  silence: 'fell silent',
}
