import source from '../../shaders/delta_chunk.wgsl' with { type: 'text' }
import rows from '../../shaders/lib/chunk_rows.wgsl' with { type: 'text' }
import decayPiece from '../../shaders/lib/decay.wgsl' with { type: 'text' }
import patch from '../../shaders/lib/patch.wgsl' with { type: 'text' }
import segment from '../../shaders/lib/segment.wgsl' with { type: 'text' }
import triangular from '../../shaders/lib/triangular.wgsl' with { type: 'text' }
import { ShapeError } from '../errors.ts'
import { graphOf, type Made, record } from '../graph/graph.ts'
import type { Kernel } from '../graph/kernel.ts'
import { CHUNK, tableShapes } from '../graph/segments.ts'
import { type Counts, expectFormat, expectShape, type Tensor } from '../graph/tensor.ts'
import { type DeltaDims, deltaConstants } from './delta_prepare.ts'
import { type Dispatch, only } from './lib/serve.ts'
import { solveUnitLower } from './lib/triangular.ts'

/** What `deltaScan` needs of every chunk; rows are tokens, so a short last chunk is not padded. All f32. */
export interface DeltaChunks {
  /** ['T', NV·(DV + DK)]: [U | W] per value head. */
  readonly uw: Tensor
  /** ['T', NV·64]: a token's row of P per value head, zeros behind the diagonal. */
  readonly p: Tensor
  /** ['T', 2·NV]: [exp(G_i) | exp(G_last − G_i)], G the sum of g from the chunk's start. */
  readonly decay: Tensor
}

export interface ChunkTile {
  /** Workgroups for a chunk of a head. Default: 3 in runs of few chunks, except on software drivers. Changes no bit. */
  readonly parts?: 1 | 3
}

/**
 * The parallel part of the chunked (WY) gated delta rule, chunks of 64 tokens from each segment's start:
 * D_ij = exp(G_i − G_j) for j ≤ i, A_ij = β_i (k_i·k_j) D_ij for j < i, P_ij = (q_i·k_j) D_ij,
 * U = (I + A)^-1 (β V), W = (I + A)^-1 (β exp(G) K).
 * Shapes as `deltaRule`; key width a multiple of 8. Source: Yang et al. 2024, Gated Delta Networks, section 3.3.
 */
export function deltaChunk(
  qkv: Tensor,
  gates: Tensor,
  { segments, chunks }: { readonly segments: Tensor; readonly chunks: Tensor },
  dims: DeltaDims,
  { parts }: ChunkTile = {},
): DeltaChunks {
  const { software } = graphOf('delta_chunk', { qkv, gates, segments, chunks }).target
  const constants = deltaConstants('delta_chunk', dims)
  const { NV, DK, DV, CHANNELS } = constants
  if (DK % 8 !== 0) throw new ShapeError(`delta_chunk: dims have key width ${DK}, expected a multiple of 8`)
  expectShape('delta_chunk', 'qkv', qkv, ['T', CHANNELS])
  expectShape('delta_chunk', 'gates', gates, ['T', 2 * NV])
  expectShape('delta_chunk', 'segments', segments, tableShapes.segments)
  expectShape('delta_chunk', 'chunks', chunks, tableShapes.chunks)
  for (const [name, t] of Object.entries({ qkv, gates })) expectFormat('delta_chunk', name, t, 'f32')
  const fills = ({ C }: Counts): boolean => C * NV >= ENOUGH
  const dispatches = (parts ? [parts] : software ? [1 as const] : [1 as const, 3 as const]).map((PARTS) => {
    const all: Dispatch = { kernel: deltaChunkKernel, workgroups: ({ C }) => [NV, C, PARTS] }
    const serves = (counts: Counts): boolean => fills(counts) === (PARTS === 1)
    return { PARTS, ...(parts || software ? all : only(all, serves)) }
  })
  let made: Readonly<Record<keyof DeltaChunks, Made | Tensor>> = {
    uw: { shape: ['T', NV * (DV + DK)] },
    p: { shape: ['T', NV * CHUNK] },
    decay: { shape: ['T', 2 * NV] },
  }
  for (const { PARTS, kernel, workgroups } of dispatches)
    made = record<keyof DeltaChunks>(kernel, {
      reads: { qkv, gates, segments, chunks },
      writes: made,
      constants: { WORKGROUP: 256, ...constants, SLICE: DK % 16 === 0 ? 16 : 8, PARTS },
      workgroups,
    })
  return made as DeltaChunks
}

const ENOUGH = 132 // workgroups that busy a large device; to sweep: 66, 132, 264

export const deltaChunkKernel: Kernel = {
  name: 'delta_chunk',
  reads: ['qkv', 'gates', 'segments', 'chunks'],
  writes: ['uw', 'p', 'decay'],
  shader: [segment, triangular, patch, decayPiece, rows, source],
  cost: ({ NK, NV, DK, DV }, { T }) => ({
    flops: T * NV! * CHUNK * (3 * DK! + DV!),
    bytes: 4 * T * (2 * NK! * DK! + NV! * (2 * DV! + DK! + CHUNK + 4)),
  }),
  cpu({ qkv, gates, segments, chunks, uw, p, decay }, constants, { C }) {
    const { NK, NV, DK, DV, CHANNELS } = constants as Record<'NK' | 'NV' | 'DK' | 'DV' | 'CHANNELS', number>
    const width = DV + DK
    for (let chunk = 0; chunk < C; chunk++) {
      const first = chunks![chunk * 2 + 1]!
      const s = chunks![chunk * 2]! * 8
      const n = Math.min(CHUNK, segments![s]! + segments![s + 1]! - first) // tokens
      for (let h = 0; h < NV; h++) {
        const head = Math.floor(h / (NV / NK))
        const q = (i: number): number => (first + i) * CHANNELS + head * DK
        const k = (i: number): number => q(i) + NK * DK
        const v = (i: number): number => (first + i) * CHANNELS + 2 * NK * DK + h * DV
        const gate = (i: number): number => (first + i) * 2 * NV + h
        const beta = (i: number): number => gates![gate(i) + NV]!
        const dot = (a: number, b: number): number => {
          let sum = 0
          for (let d = 0; d < DK; d++) sum += qkv![a + d]! * qkv![b + d]!
          return sum
        }

        const G = new Float64Array(n)
        for (let i = 0; i < n; i++) G[i] = (G[i - 1] ?? 0) + gates![gate(i)]!
        const A = new Float64Array(n * n)
        const x = new Float64Array(n * width) // [βV | β exp(G) K], then [U | W]
        for (let i = 0; i < n; i++) {
          for (let j = 0; j < CHUNK; j++) {
            const D = j <= i ? Math.exp(G[i]! - G[j]!) : 0
            if (j < i) A[i * n + j] = beta(i) * dot(k(i), k(j)) * D
            p![((first + i) * NV + h) * CHUNK + j] = j <= i ? dot(q(i), k(j)) * D : 0
          }
          for (let d = 0; d < DV; d++) x[i * width + d] = beta(i) * qkv![v(i) + d]!
          for (let d = 0; d < DK; d++) x[i * width + DV + d] = beta(i) * Math.exp(G[i]!) * qkv![k(i) + d]!
          decay![gate(i)] = Math.exp(G[i]!)
          decay![gate(i) + NV] = Math.exp(G[n - 1]! - G[i]!)
        }
        solveUnitLower(A, x, n)
        for (let i = 0; i < n; i++) uw!.set(x.subarray(i * width, (i + 1) * width), ((first + i) * NV + h) * width)
      }
    }
  },
}
