import source from '../../shaders/code_embedding.wgsl' with { type: 'text' }
import step from '../../shaders/lib/step.wgsl' with { type: 'text' }
import { ShapeError } from '../errors.ts'
import { type Made, record } from '../graph/graph.ts'
import { fold, type Kernel } from '../graph/kernel.ts'
import { expectFormat, expectShape, last, type Tensor } from '../graph/tensor.ts'
import { weightPieces } from './lib/weights.ts'

/** The column of a token that embeds no codes. */
export const NO_COLUMN = 0xffffffff

/**
 * y[t, :] = Σ_k table[k, grid[columns[t], k], :]: the embedding of a frame of codes, one from each codebook.
 *
 * grid ['*', BOOKS] u32: a row of codes per column. columns ['T'] u32. table [BOOKS · N, width] f32, f16 or bf16: the
 * codebooks' tables one below another, width a multiple of 8; a code of N or more counts as the last. y ['T', width]
 * f32: new, or `into`, of which the rows with NO_COLUMN stay what they are.
 */
export function codeEmbedding(grid: Tensor, columns: Tensor, table: Tensor, into?: Tensor): Tensor {
  const op = 'code_embedding'
  const [rows] = table.shape
  const [BOOKS, IN] = [last(grid), last(table)]
  expectFormat(op, 'grid', grid, 'u32')
  expectFormat(op, 'columns', columns, 'u32')
  expectFormat(op, 'table', table, 'f32', 'f16', 'bf16')
  expectShape(op, 'grid', grid, ['*', BOOKS])
  expectShape(op, 'columns', columns, ['T'])
  expectShape(op, 'table', table, [rows!, IN])
  if (into) {
    expectShape(op, 'into', into, ['T', IN])
    expectFormat(op, 'into', into, 'f32')
  }
  if (IN % 8 !== 0) throw new ShapeError(`${op}: table (${table.label}) has ${IN} columns, expected a multiple of 8`)
  if (typeof rows !== 'number' || rows % BOOKS !== 0)
    throw new ShapeError(`${op}: table (${table.label}) has ${rows} rows, expected as many for each of ${BOOKS} books`)
  const y: Made = { shape: ['T', IN] }
  return record<'y'>(kernels[table.format as keyof typeof kernels], {
    reads: { grid, columns, w: table },
    writes: { y: into ?? y },
    constants: { IN, BOOKS, ROWS_OF_BOOK: rows / BOOKS, NONE: NO_COLUMN, WORKGROUP },
    workgroups: ({ T }) => fold((T * IN) / 8, WORKGROUP),
  }).y
}

const WORKGROUP = 64

const kernel = (weight: string, weightBytes: number): Kernel => ({
  name: 'code_embedding',
  reads: ['grid', 'columns', 'w'],
  writes: ['y'],
  packed: ['w'],
  shader: [step, weight, source],
  cost: ({ IN, BOOKS }, { T }) => ({ flops: T * BOOKS! * IN!, bytes: T * IN! * (BOOKS! * weightBytes + 4) }),
  cpu({ grid, columns, w, y }, constants, { T }) {
    const { IN, BOOKS, ROWS_OF_BOOK, NONE } = constants as Record<string, number>
    for (let t = 0; t < T; t++) {
      const column = columns![t]!
      if (column === NONE) continue
      for (let i = 0; i < IN!; i++) {
        let sum = 0
        for (let k = 0; k < BOOKS!; k++) {
          const code = Math.min(grid![column * BOOKS! + k]!, ROWS_OF_BOOK! - 1)
          sum += w![(k * ROWS_OF_BOOK! + code) * IN! + i]!
        }
        y![t * IN! + i] = sum
      }
    }
  },
})

const kernels = {
  f32: kernel(weightPieces.f32, 4),
  f16: kernel(weightPieces.f16, 2),
  bf16: kernel(weightPieces.bf16, 2),
}
