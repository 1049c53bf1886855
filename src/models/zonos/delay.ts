import { CODEBOOKS, EOS, MASK } from './config.ts'

/** Codes of DAC frames, frame by frame: data[9 · frame + codebook]. */
export interface Codes {
  readonly frames: number
  readonly data: Uint16Array // [frames, 9]
}

/** Stands in a delayed grid for a code that is not known yet. */
export const UNKNOWN_CELL = 0

/** Columns of the grid of P given and M new frames. */
export const gridWidth = (before: number, wanted: number): number => before + wanted + CODEBOOKS

/**
 * The delayed grid [W, 9]: codebook k comes k + 1 columns late. What lies before its first and after its last frame is
 * MASK; the `wanted` frames behind the given ones are UNKNOWN_CELL.
 */
export function delayedGrid(given: Codes, wanted: number): Uint32Array {
  const frames = given.frames + wanted
  const grid = new Uint32Array(gridWidth(given.frames, wanted) * CODEBOOKS).fill(MASK)
  for (let k = 0; k < CODEBOOKS; k++)
    for (let i = 0; i < frames; i++) {
      const code = i < given.frames ? given.data[i * CODEBOOKS + k]! : UNKNOWN_CELL
      grid[(i + k + 1) * CODEBOOKS + k] = code
    }
  return grid
}

/** Frames `from` to `to` of a delayed grid [W, 9]. What is no code counts as 0. */
export function undelayed(grid: ArrayLike<number>, from: number, to: number): Codes {
  const data = new Uint16Array((to - from) * CODEBOOKS)
  for (let i = from; i < to; i++)
    for (let k = 0; k < CODEBOOKS; k++) {
      const code = grid[(i + k + 1) * CODEBOOKS + k]!
      data[(i - from) * CODEBOOKS + k] = code < EOS ? code : 0
    }
  return { frames: to - from, data }
}

/** The last column that is made: `ended` is the one in which codebook 0 said EOS, 0 when it did not. */
export const lastColumn = (width: number, ended: number): number =>
  ended === 0 ? width : Math.min(width, ended + CODEBOOKS - 1)

/** Frames that a row of codes has when it stops after its last column: those before EOS. */
export const framesAfter = (last: number): number => last - CODEBOOKS
