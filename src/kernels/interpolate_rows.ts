import source from '../../shaders/interpolate_rows.wgsl' with { type: 'text' }
import rows from '../../shaders/lib/rows.wgsl' with { type: 'text' }
import step from '../../shaders/lib/step.wgsl' with { type: 'text' }
import { ShapeError } from '../errors.ts'
import { record } from '../graph/graph.ts'
import { fold, type Kernel } from '../graph/kernel.ts'
import { expectFormat, expectShape, last, leading, type Tensor } from '../graph/tensor.ts'
import { rowCount, rowsOf } from './lib/rows.ts'

/** Rows of a table between which each row of x lies: four of them and their weights. */
export interface Taps {
  readonly taps: Tensor // [rows, 4] u32, each below the rows of the table
  readonly weights: Tensor // [rows, 4] f32
}

/**
 * y[t, :] = x[t, :] + Σ_k weights[t, k] · table[taps[t, k], :], k of four: bilinear interpolation of learned positions.
 * x [rows, width] f32, table [N, width] f32; width is a multiple of 4. y [rows, width].
 */
export function interpolateRows(x: Tensor, table: Tensor, { taps, weights }: Taps): Tensor {
  const op = 'interpolate_rows'
  const [T = 1] = x.shape
  const [N = 1] = table.shape
  const WIDTH = last(x)
  for (const [name, t] of Object.entries({ x, table, weights })) expectFormat(op, name, t, 'f32')
  expectFormat(op, 'taps', taps, 'u32')
  expectShape(op, 'x', x, [T, WIDTH])
  expectShape(op, 'table', table, [N, WIDTH])
  expectShape(op, 'taps', taps, [T, 4])
  expectShape(op, 'weights', weights, [T, 4])
  if (WIDTH % 4 !== 0)
    throw new ShapeError(`${op}: x (${x.label}) has ${WIDTH} columns, expected a multiple of 4; pad with zeros`)
  return record<'y'>(kernel, {
    reads: { x, table, taps, weights },
    writes: { y: { shape: [T, WIDTH] } },
    constants: { WIDTH, ...rowsOf(op, x), WORKGROUP },
    workgroups: (counts) => fold((leading(x, counts) * WIDTH) / 4, WORKGROUP),
  }).y
}

const WORKGROUP = 64

const kernel: Kernel = {
  name: 'interpolate_rows',
  reads: ['x', 'table', 'taps', 'weights'],
  writes: ['y'],
  shader: [step, rows, source],
  cost(constants, counts) {
    const values = rowCount(constants, counts) * constants.WIDTH!
    return { flops: 8 * values, bytes: 24 * values }
  },
  cpu({ x, table, taps, weights, y }, { WIDTH }) {
    for (let at = 0; at < y!.length; at++) {
      const [t, i] = [Math.floor(at / WIDTH!), at % WIDTH!]
      let sum = x![at]!
      for (let k = 4 * t; k < 4 * t + 4; k++) sum += weights![k]! * table![taps![k]! * WIDTH! + i]!
      y![at] = sum
    }
  },
}
