import source from '../../shaders/delta_scan_matrix.wgsl' with { type: 'text' }
import fragments from '../../shaders/lib/delta_fragments.wgsl' with { type: 'text' }
import operands from '../../shaders/lib/scan_operands.wgsl' with { type: 'text' }
import segment from '../../shaders/lib/segment.wgsl' with { type: 'text' }
import { graphOf, record } from '../graph/graph.ts'
import type { Kernel } from '../graph/kernel.ts'
import { CHUNK, tableShapes } from '../graph/segments.ts'
import { expectFormat, expectShape, type Tensor } from '../graph/tensor.ts'
import type { MatrixChunks } from './delta_chunk_matrix.ts'
import { type DeltaDims, deltaConstants } from './delta_prepare.ts'
import { expectMatrix, matrixFeatures } from './lib/delta_matrix.ts'
import { advanceStates } from './lib/delta_states.ts'

/**
 * `deltaScan` on matrix units: S, V', k and what `deltaChunkMatrix` made are f16 as operands; sums and S between chunks
 * are f32. qkv is f16, all else as `deltaRule`; head widths are multiples of 16 up to 128.
 */
export function deltaScanMatrix(
  qkv: Tensor,
  { x, p, u, decay }: MatrixChunks,
  state: Tensor,
  { segments }: { readonly segments: Tensor },
  dims: DeltaDims,
): Tensor {
  const { target } = graphOf('delta_scan_matrix', { qkv, x, p, decay, u, segments })
  const constants = deltaConstants('delta_scan_matrix', dims)
  const { NV, DK, DV, CHANNELS } = constants
  expectMatrix('delta_scan_matrix', target, dims)
  expectShape('delta_scan_matrix', 'qkv', qkv, ['T', CHANNELS])
  expectShape('delta_scan_matrix', 'x', x, ['T', NV * 2 * DK])
  expectShape('delta_scan_matrix', 'p', p, ['T', NV * CHUNK])
  expectShape('delta_scan_matrix', 'u', u, ['T', NV * DV])
  expectShape('delta_scan_matrix', 'decay', decay, ['T', 2 * NV])
  expectShape('delta_scan_matrix', 'state', state, ['*', NV, DK, DV])
  expectShape('delta_scan_matrix', 'segments', segments, tableShapes.segments)
  for (const [name, t] of Object.entries({ qkv, x, p })) expectFormat('delta_scan_matrix', name, t, 'f16')
  for (const [name, t] of Object.entries({ decay, u, state })) expectFormat('delta_scan_matrix', name, t, 'f32')
  return record(kernel, {
    reads: { qkv, x, p, decay, u, segments },
    writes: { o: { shape: ['T', NV * DV] }, state },
    constants: { ...constants, SUBGROUP: target.subgroupSize! },
    workgroups: ({ S }) => [(NV * DV) / TILE, S, 1],
  }).o
}

const TILE = 16 // columns of S to a workgroup: those of a fragment

const kernel: Kernel = {
  name: 'delta_scan_matrix',
  reads: ['qkv', 'x', 'p', 'decay', 'u', 'segments'],
  writes: ['o', 'state'],
  packed: ['qkv', 'x', 'p'],
  requires: matrixFeatures,
  optional: true,
  shader: [segment, fragments, operands, source],
  cost: ({ NK, NV, DK, DV }, { T, S }) => ({
    flops: T * NV! * DV! * (6 * DK! + CHUNK),
    bytes: T * (2 * NK! * DK! + NV! * (8 * DV! + 4 * DK! + 2 * CHUNK + 8)) + 8 * S * NV! * DK! * DV!,
  }),
  cpu({ qkv, x, p, decay, u, segments, o, state }, constants, { S }) {
    const { NK, NV, DK, DV, CHANNELS } = constants as Record<'NK' | 'NV' | 'DK' | 'DV' | 'CHANNELS', number>
    advanceStates(segments!, state!, constants, S, (S1, start, length, h) => {
      for (let first = start; first < start + length; first += CHUNK)
        chunk(S1, first, Math.min(CHUNK, start + length - first), h)
    })

    /** o and S after the n tokens from `first` on. */
    function chunk(S1: Float32Array, first: number, n: number, h: number): void {
      const v = new Float64Array(n * DV) // V'
      for (let i = 0; i < n; i++) {
        const at = (first + i) * NV + h
        const out = new Float64Array(DV)
        const w = at * 2 * DK
        for (let c = 0; c < DV; c++) v[i * DV + c] = u![at * DV + c]!
        for (let d = 0; d < DK; d++)
          for (let c = 0; c < DV; c++) {
            v[i * DV + c]! -= x![w + d]! * S1[d * DV + c]!
            out[c]! += x![w + DK + d]! * S1[d * DV + c]!
          }
        for (let j = 0; j <= i; j++) for (let c = 0; c < DV; c++) out[c]! += p![at * CHUNK + j]! * v[j * DV + c]!
        o!.set(out, at * DV)
      }
      const kept = decay![(first + n - 1) * 2 * NV + h]!
      const key = (NK + Math.floor(h / (NV / NK))) * DK
      for (let d = 0; d < DK; d++) {
        const row = Float64Array.from(S1.subarray(d * DV, (d + 1) * DV), (s) => kept * s)
        for (let j = 0; j < n; j++) {
          const t = first + j
          const k = qkv![t * CHANNELS + key + d]! * decay![(t * 2 + 1) * NV + h]!
          for (let c = 0; c < DV; c++) row[c]! += k * v[j * DV + c]!
        }
        S1.set(row, d * DV)
      }
    }
  },
}
