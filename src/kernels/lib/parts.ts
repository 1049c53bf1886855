import { ShapeError } from '../../errors.ts'
import { expectFormat, expectShape, last, type Shape, type Tensor } from '../../graph/tensor.ts'
import type { Height } from './heights.ts'

/**
 * A product whose sums are in parts, for an op that has to add anyway. The parts of a row lie one after another, and
 * rows without a gap: [rows, COUNT, OUT] f32. Whoever reads them adds neighbours, then neighbours of those sums, so
 * that it makes no difference which of them a workgroup has added already.
 */
export interface Parts {
  /** ['T', most · OUT]: room for the most parts. */
  readonly sums: Tensor
  /** How many parts there are, by the rows of a run. */
  readonly heights: readonly PartsHeight[]
}

export interface PartsHeight extends Height {
  readonly COUNT: number
}

/** What shaders/lib/parts.wgsl can add. */
export const MOST_PARTS = 8

/** Parts of rows of this shape; of a tensor as many as its width holds, whatever the height. */
export function partsOf(op: string, parts: Parts | Tensor, [rows = 1, width]: Shape): Parts {
  const sums = 'id' in parts ? parts : parts.sums
  const wide = last(sums)
  const most = wide / (width as number)
  expectFormat(op, 'parts', sums, 'f32')
  expectShape(op, 'parts', sums, [rows, wide])
  if (!(Number.isInteger(most) && most <= MOST_PARTS))
    throw new ShapeError(
      `${op}: parts (${sums.label}) has ${wide} columns, expected x's ${width} up to ${MOST_PARTS} times`,
    )
  return 'id' in parts ? { sums, heights: [{ COUNT: most }] } : parts
}
