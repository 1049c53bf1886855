import rows from '../../shaders/lib/rows.wgsl' with { type: 'text' }
import step from '../../shaders/lib/step.wgsl' with { type: 'text' }
import source from '../../shaders/scatter_rows.wgsl' with { type: 'text' }
import { record } from '../graph/graph.ts'
import { fold, type Kernel } from '../graph/kernel.ts'
import { expectFormat, expectShape, last, leading, type Tensor } from '../graph/tensor.ts'
import { rowCount, rowsOf } from './lib/rows.ts'

/**
 * y[index[r], :] = x[r, :], for other runs to read: x [R, width] f32 or f16; index [R] u32, each below the rows of y and
 * none twice; y ['*', width] f32 or f16, a pool, whose other rows stay.
 */
export function scatterRows(x: Tensor, index: Tensor, y: Tensor): Tensor {
  const op = 'scatter_rows'
  const [R = 1] = x.shape
  const WIDTH = last(x)
  for (const [name, t] of Object.entries({ x, y })) expectFormat(op, name, t, 'f32', 'f16')
  expectFormat(op, 'index', index, 'u32')
  expectShape(op, 'x', x, [R, WIDTH])
  expectShape(op, 'index', index, [R])
  expectShape(op, 'y', y, ['*', WIDTH])
  return record<'y'>(kernel, {
    reads: { x, index },
    writes: { y },
    constants: { WIDTH, ...rowsOf(op, index), WORKGROUP },
    workgroups: (counts) => fold(leading(index, counts) * WIDTH, WORKGROUP),
  }).y
}

const WORKGROUP = 64

const kernel: Kernel = {
  name: 'scatter_rows',
  reads: ['x', 'index'],
  writes: ['y'],
  shader: [step, rows, source],
  cost: (constants, counts) => ({ flops: 0, bytes: rowCount(constants, counts) * (4 + 8 * constants.WIDTH!) }),
  cpu({ x, index, y }, { WIDTH }) {
    for (const [r, row] of index!.entries()) y!.set(x!.subarray(r * WIDTH!, (r + 1) * WIDTH!), row * WIDTH!)
  },
}
