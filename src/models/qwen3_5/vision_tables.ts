import type { VisionConfig } from './config.ts'
import { type PatchGrid, patchPlaces } from './processor.ts'

/** What the tower knows of where patches lie, in its order of patches. */
export interface PatchTables {
  /** [N, 4] and [N, 4]: the learned positions around each patch and their shares. */
  readonly taps: Uint32Array
  readonly weights: Float32Array
  /** [N, headDim]: cosines, then sines, each of the row by every frequency, then of the column. */
  readonly rope: Float32Array
}

interface Angles {
  readonly cos: Float32Array
  readonly sin: Float32Array
}

/** The tables of images whose patches lie one after another, N in all. */
export function patchTables(grids: readonly PatchGrid[], c: VisionConfig): PatchTables {
  const n = grids.reduce((sum, { rows, columns }) => sum + rows * columns, 0)
  const [taps, weights, rope] = [new Uint32Array(4 * n), new Float32Array(4 * n), new Float32Array(c.headDim * n)]
  const angles = axisAngles(Math.max(...grids.flatMap(({ rows, columns }) => [rows, columns])), c)
  let t = 0
  for (const grid of grids) {
    const { row, column } = patchPlaces(grid, c.merge)
    const [down, across] = [between(grid.rows, c.side), between(grid.columns, c.side)]
    for (let i = 0; i < row.length; i++, t++) {
      const [y, x] = [down[row[i]!]!, across[column[i]!]!]
      const [above, below] = [y.low * c.side, y.high * c.side]
      taps.set([above + x.low, above + x.high, below + x.low, below + x.high], 4 * t)
      const [upper, left] = [1 - y.share, 1 - x.share]
      weights.set([upper * left, upper * x.share, y.share * left, y.share * x.share], 4 * t)
      rope.set(turned(angles, row[i]!, column[i]!, c.headDim / 4), c.headDim * t)
    }
  }
  return { taps, weights, rope }
}

/** Cosines of a row and of a column, then their sines. */
function turned({ cos, sin }: Angles, row: number, column: number, width: number): Float32Array {
  const angles = new Float32Array(4 * width)
  ;[cos, sin].forEach((table, half) => {
    angles.set(table.subarray(width * row, width * (row + 1)), 2 * half * width)
    angles.set(table.subarray(width * column, width * (column + 1)), (2 * half + 1) * width)
  })
  return angles
}

/** `count` places evenly over `side` learned ones, from the first to the last: the two around each, the share of the higher. */
function between(count: number, side: number): { low: number; high: number; share: number }[] {
  return Array.from({ length: count }, (_, i) => {
    const at = count === 1 ? 0 : (i * (side - 1)) / (count - 1)
    const low = Math.floor(at)
    return { low, high: Math.min(low + 1, side - 1), share: at - low }
  })
}

/** 2-D rotary positions (RoFormer along each axis): cosines and sines [count, headDim / 4], rounded as in rope.ts. */
function axisAngles(count: number, { headDim, theta }: VisionConfig): Angles {
  const quarter = headDim / 4
  const [cos, sin] = [new Float32Array(count * quarter), new Float32Array(count * quarter)]
  for (let j = 0; j < quarter; j++) {
    const frequency = Math.fround(1 / Math.fround(theta ** ((2 * j) / (headDim / 2))))
    for (let i = 0; i < count; i++) {
      const angle = Math.fround(i * frequency)
      cos[i * quarter + j] = Math.cos(angle)
      sin[i * quarter + j] = Math.sin(angle)
    }
  }
  return { cos, sin }
}
