import source from '../../shaders/delta_chunk_matrix.wgsl' with { type: 'text' }
import inverse from '../../shaders/lib/block_inverse.wgsl' with { type: 'text' }
import chunkDecays from '../../shaders/lib/chunk_decays.wgsl' with { type: 'text' }
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
  /** ['T', NV·2·DK] f16: [W | exp(G_i) q_i] per value head. */
  readonly x: Tensor
  /** ['T', NV·DV] f32. */
  readonly u: Tensor
  /** ['T', NV·64] f16: a token's row of P per value head, zeros behind the diagonal. */
  readonly p: Tensor
  /** ['T', 2·NV] f32: [exp(G_i) | exp(G_last − G_i)], G the sum of g from the chunk's start. */
  readonly decay: Tensor
}

/**
 * `deltaChunk` on matrix units: U, W and P as there, from operands in f16; decays, sums and the inverse of I + A are
 * f32. qkv is f16, all else as `deltaRule`; head widths are multiples of 16 up to 128.
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
  expectFormat('delta_chunk_matrix', 'qkv', qkv, 'f16')
  expectFormat('delta_chunk_matrix', 'gates', gates, 'f32')
  return record(kernel, {
    reads: { qkv, gates, segments, chunks },
    writes: {
      x: { shape: ['T', NV * 2 * DK], format: 'f16' },
      p: { shape: ['T', NV * CHUNK], format: 'f16' },
      u: { shape: ['T', NV * DV] },
      decay: { shape: ['T', 2 * NV] },
    },
    constants: { ...constants, SUBGROUP: target.subgroupSize! },
    workgroups: ({ C }) => [NV, C, 1],
  })
}

const kernel: Kernel = {
  name: 'delta_chunk_matrix',
  reads: ['qkv', 'gates', 'segments', 'chunks'],
  writes: ['x', 'p', 'u', 'decay'],
  packed: ['qkv', 'x', 'p'],
  requires: matrixFeatures,
  optional: true,
  shader: [segment, fragments, decayPiece, chunkDecays, inverse, operands, source],
  cost: ({ NK, NV, DK, DV }, { T }) => ({
    flops: T * NV! * CHUNK * (3 * DK! + DV!),
    bytes: T * (4 * NK! * DK! + NV! * (6 * DV! + 4 * DK! + 2 * CHUNK + 16)),
  }),
  cpu(views, constants, counts) {
    const { NK, NV, DK, DV, CHANNELS } = constants as Record<'NK' | 'NV' | 'DK' | 'DV' | 'CHANNELS', number>
    const { qkv, x, u, decay } = views
    const { T } = counts
    const uw = new Float32Array(T * NV * (DV + DK))
    deltaChunkKernel.cpu({ ...views, uw }, constants, counts)
    for (let t = 0; t < T; t++)
      for (let h = 0; h < NV; h++) {
        const row = (t * NV + h) * (DV + DK)
        const to = (t * NV + h) * 2 * DK
        const q = t * CHANNELS + Math.floor(h / (NV / NK)) * DK
        const grown = decay![t * 2 * NV + h]!
        x!.set(uw.subarray(row + DV, row + DV + DK), to)
        for (let d = 0; d < DK; d++) x![to + DK + d] = grown * qkv![q + d]!
        u!.set(uw.subarray(row, row + DV), (t * NV + h) * DV)
      }
  },
}
