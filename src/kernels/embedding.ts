import source from '../../shaders/embedding.wgsl' with { type: 'text' }
import rows from '../../shaders/lib/rows.wgsl' with { type: 'text' }
import step from '../../shaders/lib/step.wgsl' with { type: 'text' }
import weightBf16 from '../../shaders/lib/weight_bf16.wgsl' with { type: 'text' }
import weightF16 from '../../shaders/lib/weight_f16.wgsl' with { type: 'text' }
import weightF32 from '../../shaders/lib/weight_f32.wgsl' with { type: 'text' }
import { ShapeError } from '../errors.ts'
import { record } from '../graph/graph.ts'
import { fold, type Kernel } from '../graph/kernel.ts'
import { expectFormat, expectShape, last, leading, type Tensor } from '../graph/tensor.ts'
import { rowCount, rowsOf } from './lib/rows.ts'

/**
 * y[t, :] = table[ids[t], :] as f32. ids [T] u32, each below the rows of the table; table [N, width] f32, f16 or
 * bf16: all of it, or the rows of a request ([T, width]; ids count those). y [T, width]; width is a multiple of 8.
 */
export function embedding(ids: Tensor, table: Tensor): Tensor {
  const [tokens = 1] = ids.shape
  const [N = 1] = table.shape
  const IN = last(table)
  expectFormat('embedding', 'ids', ids, 'u32')
  expectFormat('embedding', 'table', table, 'f32', 'f16', 'bf16')
  expectShape('embedding', 'ids', ids, [tokens])
  expectShape('embedding', 'table', table, [N, IN])
  if (IN % 8 !== 0)
    throw new ShapeError(
      `embedding: table (${table.label}) has ${IN} columns, expected a multiple of 8; pad with zeros`,
    )
  return record(kernels[table.format as keyof typeof kernels], {
    reads: { ids, w: table },
    writes: { y: { shape: [tokens, IN] } },
    constants: { IN, ...rowsOf('embedding', ids), WORKGROUP },
    workgroups: (counts) => fold((leading(ids, counts) * IN) / 8, WORKGROUP),
  }).y
}

const WORKGROUP = 64

const kernel = (weight: string, weightBytes: number): Kernel => ({
  name: 'embedding',
  reads: ['ids', 'w'],
  writes: ['y'],
  packed: ['w'],
  shader: [step, rows, weight, source],
  cost: (constants, counts) => ({
    flops: 0,
    bytes: rowCount(constants, counts) * (4 + constants.IN! * (weightBytes + 4)),
  }),
  cpu({ ids, w, y }, { IN }) {
    for (const [t, id] of ids!.entries()) y!.set(w!.subarray(id * IN!, (id + 1) * IN!), t * IN!)
  },
})

const kernels = { f32: kernel(weightF32, 4), f16: kernel(weightF16, 2), bf16: kernel(weightBf16, 2) }
