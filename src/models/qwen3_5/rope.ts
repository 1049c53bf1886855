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
  const { half } = rows
  const axes = Uint8Array.from({ length: half }, (_, i) => (i < 3 * (rope.mropeSection[i % 3] ?? 0) ? i % 3 : 0))
  const table = new Float32Array(time.length * 2 * half)
  const isText = (t: number): boolean => height[t] === time[t] && width[t] === time[t]
  for (let t = 0; t < time.length; ) {
    let count = 1
    while (isText(t + count) && time[t + count] === time[t]! + count) count++
    table.set(rows.of(time[t]!, count), t * 2 * half)
    if (!isText(t)) {
      const each = [time, height, width].map((axis) => rows.of(axis[t]!, 1))
      axes.forEach((axis, i) => {
        table[t * 2 * half + i] = each[axis]![i]!
        table[t * 2 * half + half + i] = each[axis]![half + i]!
      })
    }
    t += count
  }
  return table
}

/** The rotary table of `length` text tokens, their positions from `start` on. It may be shared: do not write to it. */
export const textRope = (start: number, length: number, rope: Rope): Float32Array => rowsOf(rope).of(start, length)

interface Rows {
  readonly half: number
  /** [count, 2 · half]: cosines, then sines of every frequency, at consecutive positions. */
  of(position: number, count: number): Float32Array
}

// Requests have the same few positions, so that rows are remembered: 16384 rows of 64 floats are 4 MiB.
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
  let known = new Float32Array() // from position 0 on

  function make(position: number, count: number): Float32Array<ArrayBuffer> {
    const rows = new Float32Array(count * rotary)
    for (let row = 0; row < count; row++) {
      for (let i = 0; i < half; i++) {
        const angle = Math.fround((position + row) * frequencies[i]!)
        rows[row * rotary + i] = Math.cos(angle)
        rows[row * rotary + half + i] = Math.sin(angle)
      }
    }
    return rows
  }

  return {
    half,
    of(position, count) {
      const end = position + count
      if (end > MAX_ROWS) return make(position, count)
      if (end * rotary > known.length) known = make(0, Math.max(256, 2 ** Math.ceil(Math.log2(end))))
      return known.subarray(position * rotary, end * rotary)
    },
  }
}
