import { ShapeError } from '../../errors.ts'

export interface Rope {
  readonly headDim: number
  readonly partialRotaryFactor: number
  readonly theta: number
  /** How many frequencies follow the time, height and width axis. */
  readonly mropeSection: readonly number[]
}

type Axis = Int32Array | readonly number[]
/** Time, height and width position of each token; equal in text. */
export type Positions = readonly [time: Axis, height: Axis, width: Axis]

/** Positions of `length` text tokens from `start` on. */
export function textPositions(start: number, length: number): Positions {
  const axis = Int32Array.from({ length }, (_, i) => start + i)
  return [axis, axis, axis]
}

/**
 * The rotary table of T tokens, [T, ROT] with ROT = headDim · partialRotaryFactor: each row is ROT/2 cosines, then
 * ROT/2 sines. Interleaved M-RoPE: frequency i turns by the time, height or width position in turn, i mod 3, as long
 * as the axis has frequencies left in mropeSection; the rest follow time.
 *
 * Frequencies and angles are rounded to f32 as transformers' Qwen3_5TextRotaryEmbedding does; exact angles would
 * differ by 1e-4 at position 1000.
 */
export function ropeTable(positions: Positions, rope: Rope): Float32Array {
  const [time, height, width] = positions
  if (height.length !== time.length || width.length !== time.length)
    throw new ShapeError(
      `ropeTable: the axes have ${time.length}, ${height.length} and ${width.length} positions, expected equal numbers`,
    )
  const rows = rowsOf(rope)
  const half = rows.frequencies.length
  const axes = Uint8Array.from({ length: half }, (_, i) => (i < 3 * (rope.mropeSection[i % 3] ?? 0) ? i % 3 : 0))
  const table = new Float32Array(time.length * 2 * half)
  for (let t = 0; t < time.length; t++) {
    const row = rows.at(time[t]!)
    table.set(row, t * 2 * half)
    if (height[t] === time[t] && width[t] === time[t]) continue
    const others = [row, rows.at(height[t]!), rows.at(width[t]!)]
    for (let i = 0; i < half; i++) {
      const from = others[axes[i]!]!
      table[t * 2 * half + i] = from[i]!
      table[t * 2 * half + half + i] = from[half + i]!
    }
  }
  return table
}

interface Rows {
  readonly frequencies: Float32Array
  /** Cosines and sines of every frequency at one position. */
  at(position: number): Float32Array
}

// Requests start at the same few positions, so rows are remembered: 16384 rows of 64 floats are 4 MiB.
const MAX_ROWS = 16384
const MAX_ROPES = 4
const remembered = new Map<string, Rows>()

function rowsOf({ headDim, partialRotaryFactor, theta }: Rope): Rows {
  const rotary = headDim * partialRotaryFactor
  if (!(Number.isInteger(rotary / 2) && rotary > 0))
    throw new ShapeError(
      `ropeTable: headDim ${headDim} · partialRotaryFactor ${partialRotaryFactor} is ${rotary}, expected an even number`,
    )
  const key = `${rotary} ${theta}`
  let rows = remembered.get(key)
  if (!rows) {
    if (remembered.size === MAX_ROPES) remembered.clear()
    rows = makeRows(rotary, theta)
    remembered.set(key, rows)
  }
  return rows
}

function makeRows(rotary: number, theta: number): Rows {
  const half = rotary / 2
  const frequencies = Float32Array.from({ length: half }, (_, i) => 1 / Math.fround(theta ** ((2 * i) / rotary)))
  const made = new Map<number, Float32Array>()
  return {
    frequencies,
    at(position) {
      let row = made.get(position)
      if (!row) {
        if (made.size === MAX_ROWS) made.clear()
        row = new Float32Array(rotary)
        for (let i = 0; i < half; i++) {
          const angle = Math.fround(position * frequencies[i]!)
          row[i] = Math.cos(angle)
          row[half + i] = Math.sin(angle)
        }
        made.set(position, row)
      }
      return row
    },
  }
}
