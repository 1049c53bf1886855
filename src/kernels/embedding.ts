import source from '../../shaders/embedding.wgsl' with { type: 'text' }
import either from '../../shaders/lib/embedded_either.wgsl' with { type: 'text' }
import inTable from '../../shaders/lib/embedded_table.wgsl' with { type: 'text' }
import rows from '../../shaders/lib/rows.wgsl' with { type: 'text' }
import step from '../../shaders/lib/step.wgsl' with { type: 'text' }
import { ShapeError } from '../errors.ts'
import { record } from '../graph/graph.ts'
import { fold, type Kernel } from '../graph/kernel.ts'
import { expectFormat, expectShape, last, leading, type Tensor } from '../graph/tensor.ts'
import { rowCount, rowsOf } from './lib/rows.ts'
import { weightPieces } from './lib/weights.ts'

/** Ids from here on are rows of `also`. */
export const ALSO = 2 ** 31

/**
 * y[t, :] = table[ids[t], :] as f32. ids [T] u32, each below the rows of the table; table [N, width] f32, f16 or
 * bf16: all of it, or the rows of a request ([T, width]; ids count those). y [T, width]; width is a multiple of 8.
 * Ids from ALSO on are rows of `also` instead, which is ['*', width] f32: what another model embedded.
 */
export function embedding(ids: Tensor, table: Tensor, also?: Tensor): Tensor {
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
  if (also) {
    expectFormat('embedding', 'also', also, 'f32')
    expectShape('embedding', 'also', also, ['*', IN])
  }
  const { plain, both } = kernels[table.format as keyof typeof kernels]
  return record<'y'>(also ? both : plain, {
    reads: { ids, w: table, ...(also && { also }) },
    writes: { y: { shape: [tokens, IN] } },
    constants: { IN, ...(also && { FIRST: ALSO }), ...rowsOf('embedding', ids), Y_BINDING: also ? 3 : 2, WORKGROUP },
    workgroups: (counts) => fold((leading(ids, counts) * IN) / 8, WORKGROUP),
  }).y
}

const WORKGROUP = 64

const kernel = (weight: string, weightBytes: number, also: boolean): Kernel => ({
  name: 'embedding',
  reads: ['ids', 'w', ...(also ? ['also'] : [])],
  writes: ['y'],
  packed: ['w'],
  shader: [step, rows, weight, also ? either : inTable, source],
  cost: (constants, counts) => ({
    flops: 0,
    bytes: rowCount(constants, counts) * (4 + constants.IN! * (weightBytes + 4)),
  }),
  cpu({ ids, w, also, y }, { IN }) {
    for (const [t, id] of ids!.entries()) {
      const [from, row] = id < ALSO ? [w!, id] : [also!, id - ALSO]
      y!.set(from.subarray(row * IN!, (row + 1) * IN!), t * IN!)
    }
  },
})

const both = (weight: string, bytes: number) => ({
  plain: kernel(weight, bytes, false),
  both: kernel(weight, bytes, true),
})
const kernels = { f32: both(weightPieces.f32, 4), f16: both(weightPieces.f16, 2), bf16: both(weightPieces.bf16, 2) }
