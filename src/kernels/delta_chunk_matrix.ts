import source from '../../shaders/delta_chunk_matrix.wgsl' with { type: 'text' }
import inverse from '../../shaders/lib/block_inverse.wgsl' with { type: 'text' }
import chunkFragments from '../../shaders/lib/chunk_fragments.wgsl' with { type: 'text' }
import operands from '../../shaders/lib/chunk_operands.wgsl' with { type: 'text' }
import decayPiece from '../../shaders/lib/decay.wgsl' with { type: 'text' }
import fragments from '../../shaders/lib/delta_fragments.wgsl' with { type: 'text' }
import segment from '../../shaders/lib/segment.wgsl' with { type: 'text' }
import { graphOf, record } from '../graph/graph.ts'
import type { Kernel } from '../graph/kernel.ts'
import { CHUNK, tableShapes } from '../graph/segments.ts'
import { expectFormat, expectShape, type Tensor } from '../graph/tensor.ts'
import { deltaChunkKernel } from './delta_chunk.ts'
import { type DeltaDims, deltaConstants } from './delta_prepare.ts'
import { expectMatrix, matrixFeatures } from './lib/delta_matrix.ts'

/** What `deltaScanMatrix` needs of every chunk; rows are tokens, so a short last chunk is not padded. */
export interface MatrixChunks {
  /** ['T', NV·3·DK] f16: [W | exp(G_i) q_i | exp(G_last − G_i) k_i] per value head. */
  readonly x: Tensor
  /** ['T', NV·64] f16: a token's row of P per value head, zeros behind the diagonal. */
  readonly p: Tensor
  /** ['T', NV·DV] f32: U. */
  readonly u: Tensor
  /** ['T', NV] f32: exp(G_i), G the sum of g from the chunk's start. */
  readonly grown: Tensor
}

/**
 * `deltaChunk` on matrix units: U, W and P as there, from operands that are rounded to f16; decays, sums and the inverse
 * of I + A are f32. Shapes as `deltaRule`; head widths are multiples of 16 up to 128.
 */
export function deltaChunkMatrix(
  qkv: Tensor,
  gates: Tensor,
  { segments, chunks }: { readonly segments: Tensor; readonly chunks: Tensor },
  dims: DeltaDims,
): MatrixChunks {
  const { target } = graphOf('delta_chunk_matrix', { qkv, gates, segments, chunks })
  const constants = deltaConstants('delta_chunk_matrix', dims)
  const { NV, DK, DV, CHANNELS } = constants
  expectMatrix('delta_chunk_matrix', target, dims)
  expectShape('delta_chunk_matrix', 'qkv', qkv, ['T', CHANNELS])
  expectShape('delta_chunk_matrix', 'gates', gates, ['T', 2 * NV])
  expectShape('delta_chunk_matrix', 'segments', segments, tableShapes.segments)
  expectShape('delta_chunk_matrix', 'chunks', chunks, tableShapes.chunks)
  for (const [name, t] of Object.entries({ qkv, gates })) expectFormat('delta_chunk_matrix', name, t, 'f32')
  return record(kernel, {
    reads: { qkv, gates, segments, chunks },
    writes: {
      x: { shape: ['T', NV * 3 * DK], format: 'f16' },
      p: { shape: ['T', NV * CHUNK], format: 'f16' },
      u: { shape: ['T', NV * DV] },
      grown: { shape: ['T', NV] },
    },
    constants: { ...constants, SUBGROUP: target.subgroupSize! },
    workgroups: ({ C }) => [NV, C, 1],
  })
}

const kernel: Kernel = {
  name: 'delta_chunk_matrix',
  reads: ['qkv', 'gates', 'segments', 'chunks'],
  writes: ['x', 'p', 'u', 'grown'],
  packed: ['x', 'p'],
  requires: matrixFeatures,
  optional: true,
  shader: [segment, fragments, decayPiece, inverse, operands, chunkFragments, source],
  cost: ({ NK, NV, DK, DV }, { T }) => ({
    flops: T * NV! * CHUNK * (3 * DK! + DV!),
    bytes: T * (8 * NK! * DK! + NV! * (8 * DV! + 6 * DK! + 2 * CHUNK + 12)),
  }),
  cpu(views, constants, counts) {
    const { NK, NV, DK, DV, CHANNELS } = constants as Record<'NK' | 'NV' | 'DK' | 'DV' | 'CHANNELS', number>
    const { qkv, x, p, u, grown } = views
    const { T } = counts
    const uw = new Float32Array(T * NV * (DV + DK))
    const decay = new Float32Array(T * 2 * NV)
    deltaChunkKernel.cpu({ ...views, uw, p: p!, decay }, constants, counts)
    for (let t = 0; t < T; t++)
      for (let h = 0; h < NV; h++) {
        const row = (t * NV + h) * (DV + DK)
        const to = (t * NV + h) * 3 * DK
        const q = t * CHANNELS + Math.floor(h / (NV / NK)) * DK
        const [begun, left] = [decay[t * 2 * NV + h]!, decay[(t * 2 + 1) * NV + h]!]
        u!.set(uw.subarray(row, row + DV), (t * NV + h) * DV)
        x!.set(uw.subarray(row + DV, row + DV + DK), to)
        for (let d = 0; d < DK; d++) {
          x![to + DK + d] = begun * qkv![q + d]!
          x![to + 2 * DK + d] = left * qkv![q + NK * DK + d]!
        }
        grown![t * NV + h] = begun
      }
  },
}
