import source from '../../shaders/delta_rule.wgsl' with { type: 'text' }
import segment from '../../shaders/lib/segment.wgsl' with { type: 'text' }
import { graphOf, record } from '../graph/graph.ts'
import type { Kernel } from '../graph/kernel.ts'
import { tableShapes } from '../graph/segments.ts'
import type { Target } from '../graph/target.ts'
import { expectFormat, expectShape, type Tensor } from '../graph/tensor.ts'
import { type ChunkTile, deltaChunk } from './delta_chunk.ts'
import { deltaChunkMatrix } from './delta_chunk_matrix.ts'
import { type DeltaDims, deltaConstants } from './delta_prepare.ts'
import { deltaScan, type ScanTile } from './delta_scan.ts'
import { deltaScanMatrix } from './delta_scan_matrix.ts'
import { matrixMisfit } from './lib/delta_matrix.ts'
import { advanceStates } from './lib/delta_states.ts'

/**
 * Token by token, or in chunks of 64: in f32 (`deltaChunk`, `deltaScan`) or on matrix units, operands rounded to f16
 * (`deltaChunkMatrix`, `deltaScanMatrix`). The same maths.
 */
export type DeltaForm = 'recurrent' | 'chunked' | 'matrix'

export interface DeltaOptions extends ChunkTile, ScanTile {
  /** Default: the target decides, never the number of tokens. */
  readonly form?: DeltaForm
}

/**
 * The gated delta rule: per value head, with S [DK, DV] from state slot `from` of the token's segment (0: zeros),
 * S ← exp(g) S, u = β (v − S^T k), S ← S + k u^T, o = S^T q. S after the last token goes to slot `to` (0: dropped).
 * qkv ['T', 2·NK·DK + NV·DV] = [q^ | k^ | v] in `deltaFormat` and gates ['T', 2·NV] from `convPrepare`, state
 * ['*', NV, DK, DV], o ['T', NV·DV]; all else f32. Source: Yang et al. 2024, Gated Delta Networks.
 */
export function deltaRule(
  qkv: Tensor,
  gates: Tensor,
  state: Tensor,
  tables: { readonly segments: Tensor; readonly chunks: Tensor },
  dims: DeltaDims,
  { form = deltaForm(graphOf('delta_rule', { qkv, gates }).target, dims), ...tile }: DeltaOptions = {},
): Tensor {
  if (form === 'matrix') return deltaScanMatrix(qkv, deltaChunkMatrix(qkv, gates, tables, dims), state, tables, dims)
  if (form === 'chunked') return deltaScan(qkv, deltaChunk(qkv, gates, tables, dims, tile), state, tables, dims, tile)
  const constants = deltaConstants('delta_rule', dims)
  const { NV, DK, DV, CHANNELS } = constants
  expectShape('delta_rule', 'qkv', qkv, ['T', CHANNELS])
  expectShape('delta_rule', 'gates', gates, ['T', 2 * NV])
  expectShape('delta_rule', 'state', state, ['*', NV, DK, DV])
  expectShape('delta_rule', 'segments', tables.segments, tableShapes.segments)
  for (const [name, t] of Object.entries({ qkv, gates, state })) expectFormat('delta_rule', name, t, 'f32')
  return record(kernel, {
    reads: { qkv, gates, segments: tables.segments },
    writes: { o: { shape: ['T', NV * DV] }, state },
    constants: { WORKGROUP, ...constants },
    workgroups: ({ S }) => [Math.ceil(DV / WORKGROUP), S, NV],
  }).o
}

/** What the target asks for. `units` false: without matrix units. */
export function deltaForm(target: Target, dims: DeltaDims, units = true): DeltaForm {
  const { software, disabled } = target
  const failed = (...kernels: string[]): boolean => kernels.some((kernel) => disabled.has(kernel))
  if (software) return 'recurrent'
  if (units && !failed('delta_chunk_matrix', 'delta_scan_matrix') && !matrixMisfit(target, dims)) return 'matrix'
  // Chunks take 64 times fewer serial steps; their kernels have barriers and tiles of 16 columns.
  const fits = dims.keyWidth % 8 === 0 && dims.keyWidth <= 128 && dims.valueWidth % 16 === 0
  return fits && !failed('delta_chunk', 'delta_scan') ? 'chunked' : 'recurrent'
}

/** Of qkv, for this form. */
export const deltaFormat = (form: DeltaForm): 'f32' | 'f16' => (form === 'matrix' ? 'f16' : 'f32')

const WORKGROUP = 32

const kernel: Kernel = {
  name: 'delta_rule',
  reads: ['qkv', 'gates', 'segments'],
  writes: ['o', 'state'],
  shader: [segment, source],
  cost: ({ NK, NV, DK, DV }, { T, S }) => ({
    flops: 7 * T * NV! * DK! * DV!,
    bytes: 4 * (T * (2 * NK! * DK! + NV! * (2 * DV! + 2)) + 2 * S * NV! * DK! * DV!),
  }),
  cpu({ qkv, gates, segments, o, state }, constants, { S }) {
    const { NK, NV, DK, DV, CHANNELS } = constants as Record<'NK' | 'NV' | 'DK' | 'DV' | 'CHANNELS', number>
    advanceStates(segments!, state!, constants, S, (S1, start, length, h) => {
      for (let t = start; t < start + length; t++) token(S1, t, h)
    })

    function token(S1: Float32Array, t: number, h: number): void {
      const q = t * CHANNELS + Math.floor(h / (NV / NK)) * DK
      const k = q + NK * DK
      const v = t * CHANNELS + 2 * NK * DK + h * DV
      const decay = Math.exp(gates![t * 2 * NV + h]!)
      const beta = gates![(t * 2 + 1) * NV + h]!
      const u = Float64Array.from(qkv!.subarray(v, v + DV)) // v - S^T k
      const out = new Float64Array(DV)
      for (let d = 0; d < DK; d++)
        for (let i = 0; i < DV; i++) {
          S1[d * DV + i]! *= decay
          u[i]! -= S1[d * DV + i]! * qkv![k + d]!
        }
      for (let d = 0; d < DK; d++)
        for (let i = 0; i < DV; i++) {
          S1[d * DV + i]! += qkv![k + d]! * beta * u[i]!
          out[i]! += S1[d * DV + i]! * qkv![q + d]!
        }
      o!.set(out, (t * NV + h) * DV)
    }
  },
}
