import source from '../../shaders/gather_rows.wgsl' with { type: 'text' }
import rows from '../../shaders/lib/rows.wgsl' with { type: 'text' }
import step from '../../shaders/lib/step.wgsl' with { type: 'text' }
import { record } from '../graph/graph.ts'
import { fold, type Kernel } from '../graph/kernel.ts'
import { expectFormat, expectShape, last, leading, type Tensor } from '../graph/tensor.ts'
import { rowCount, rowsOf } from './lib/rows.ts'

/**
 * y[r, :] = x[index[r], :]: the rows that are read back. x [T, width] f32 or f16, index [R] u32, each below the rows of
 * x; y [R, width] f32.
 */
export function gatherRows(x: Tensor, index: Tensor): Tensor {
  const [T = 1] = x.shape
  const [R = 1] = index.shape
  const WIDTH = last(x)
  expectFormat('gather_rows', 'x', x, 'f32', 'f16')
  expectFormat('gather_rows', 'index', index, 'u32')
  expectShape('gather_rows', 'x', x, [T, WIDTH])
  expectShape('gather_rows', 'index', index, [R])
  return record(kernel, {
    reads: { x, index },
    writes: { y: { shape: [R, WIDTH] } },
    constants: { WIDTH, ...rowsOf('gather_rows', index), WORKGROUP },
    workgroups: (counts) => fold(leading(index, counts) * WIDTH, WORKGROUP),
  }).y
}

const WORKGROUP = 64

const kernel: Kernel = {
  name: 'gather_rows',
  reads: ['x', 'index'],
  writes: ['y'],
  shader: [step, rows, source],
  cost: (constants, counts) => ({ flops: 0, bytes: rowCount(constants, counts) * (4 + 8 * constants.WIDTH!) }),
  cpu({ x, index, y }, { WIDTH }) {
    for (const [r, row] of index!.entries()) y!.set(x!.subarray(row * WIDTH!, (row + 1) * WIDTH!), r * WIDTH!)
  },
}
