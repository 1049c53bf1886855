import source from '../../shaders/delta_scan.wgsl' with { type: 'text' }
import patch from '../../shaders/lib/patch.wgsl' with { type: 'text' }
import slices from '../../shaders/lib/scan_slice.wgsl' with { type: 'text' }
import segment from '../../shaders/lib/segment.wgsl' with { type: 'text' }
import { ShapeError } from '../errors.ts'
import { graphOf, record } from '../graph/graph.ts'
import type { Kernel } from '../graph/kernel.ts'
import { CHUNK, tableShapes } from '../graph/segments.ts'
import type { Target } from '../graph/target.ts'
import { expectFormat, expectShape, type Tensor } from '../graph/tensor.ts'
import type { DeltaChunks } from './delta_chunk.ts'
import { type DeltaDims, deltaConstants } from './delta_prepare.ts'
import { advanceStates } from './lib/delta_states.ts'

/** Neither changes a bit of the results. */
export interface ScanTile {
  /** Columns of the state that a workgroup of 8 · tile invocations owns. To sweep: 8, 16, 32. */
  readonly tile?: number
  /** Rows of the other operands in workgroup memory at once, at most twice the tile. To sweep: 8, 16, 32. */
  readonly slice?: number
}

/**
 * The serial part of the chunked gated delta rule, one chunk of 64 tokens of a segment after the other:
 * V' = U − W S, o = exp(G) Q S + P V', S ← exp(G_last) S + (exp(G_last − G) K)^T V'.
 * Shapes and state slots as `deltaRule`; key width a multiple of 8 up to 128, value
 * width a multiple of 16.
 */
export function deltaScan(
  qkv: Tensor,
  { uw, p, decay }: DeltaChunks,
  state: Tensor,
  { segments }: { readonly segments: Tensor },
  dims: DeltaDims,
  { tile: TILE = 16, slice }: ScanTile = {},
): Tensor {
  const constants = deltaConstants('delta_scan', dims)
  const { NV, DK, DV, CHANNELS } = constants
  const SLICE = slice ?? sliceOf(graphOf('delta_scan', { qkv }).target, DK, TILE)
  if (DV % TILE !== 0) throw new ShapeError(`delta_scan: dims have value width ${DV}, expected a multiple of ${TILE}`)
  if (DK > MAX_DK || DK % 8 !== 0)
    throw new ShapeError(
      `delta_scan: dims have key width ${DK}, expected a multiple of 8 up to ${MAX_DK}; use the recurrent form`,
    )
  if (SLICE > 2 * TILE || DK % SLICE !== 0 || ![8, 16, 32].includes(SLICE))
    throw new ShapeError(`delta_scan: slice is ${SLICE}, expected 8, 16 or 32, a divisor of ${DK}, up to ${2 * TILE}`)
  expectShape('delta_scan', 'qkv', qkv, ['T', CHANNELS])
  expectShape('delta_scan', 'uw', uw, ['T', NV * (DV + DK)])
  expectShape('delta_scan', 'p', p, ['T', NV * CHUNK])
  expectShape('delta_scan', 'decay', decay, ['T', 2 * NV])
  expectShape('delta_scan', 'state', state, ['*', NV, DK, DV])
  expectShape('delta_scan', 'segments', segments, tableShapes.segments)
  for (const [name, t] of Object.entries({ qkv, uw, p, decay, state })) expectFormat('delta_scan', name, t, 'f32')
  return record(kernel, {
    reads: { qkv, uw, p, decay, segments },
    writes: { o: { shape: ['T', NV * DV] }, state },
    constants: { ...constants, WORKGROUP: 8 * TILE, TILE, SLICE },
    workgroups: ({ S }) => [(NV * DV) / TILE, S, 1],
  }).o
}

const MAX_DK = 128 // 32 quads of rows, one for each of WORKGROUP / (TILE / 4)

/** The largest slice beside TILE columns of the state and of V'; software drivers compile short ones faster. */
function sliceOf({ limits, software }: Target, DK: number, TILE: number): number {
  const bytes = (slice: number): number => 4 * (TILE * (DK + CHUNK) + 128 * slice)
  const fits = (slice: number): boolean =>
    slice <= 2 * TILE && DK % slice === 0 && bytes(slice) <= limits.workgroupBytes
  return (!software && [32, 16].find(fits)) || 8
}

const kernel: Kernel = {
  name: 'delta_scan',
  reads: ['qkv', 'uw', 'p', 'decay', 'segments'],
  writes: ['o', 'state'],
  shader: [segment, patch, slices, source],
  cost: ({ NK, NV, DK, DV }, { T, S }) => ({
    flops: T * NV! * DV! * (6 * DK! + CHUNK),
    bytes: 4 * (T * (2 * NK! * DK! + NV! * (2 * DV! + DK! + CHUNK + 2)) + 2 * S * NV! * DK! * DV!),
  }),
  cpu({ qkv, uw, p, decay, segments, o, state }, constants, { S }) {
    const { NK, NV, DK, DV, CHANNELS } = constants as Record<'NK' | 'NV' | 'DK' | 'DV' | 'CHANNELS', number>
    advanceStates(segments!, state!, constants, S, (S1, start, length, h) => {
      for (let first = start; first < start + length; first += CHUNK)
        chunk(S1, first, Math.min(CHUNK, start + length - first), h)
    })

    /** o and S after the n tokens from `first` on. */
    function chunk(S1: Float32Array, first: number, n: number, h: number): void {
      const head = Math.floor(h / (NV / NK))
      const v = new Float64Array(n * DV) // V'
      for (let i = 0; i < n; i++) {
        const t = first + i
        const u = (t * NV + h) * (DV + DK)
        const q = t * CHANNELS + head * DK
        const grown = decay![t * 2 * NV + h]!
        const out = new Float64Array(DV)
        for (let c = 0; c < DV; c++) v[i * DV + c] = uw![u + c]!
        for (let d = 0; d < DK; d++)
          for (let c = 0; c < DV; c++) {
            v[i * DV + c]! -= uw![u + DV + d]! * S1[d * DV + c]!
            out[c]! += grown * qkv![q + d]! * S1[d * DV + c]!
          }
        for (let j = 0; j <= i; j++)
          for (let c = 0; c < DV; c++) out[c]! += p![(t * NV + h) * CHUNK + j]! * v[j * DV + c]!
        o!.set(out, (t * NV + h) * DV)
      }
      const kept = decay![(first + n - 1) * 2 * NV + h]!
      for (let d = 0; d < DK; d++) {
        const row = Float64Array.from(S1.subarray(d * DV, (d + 1) * DV), (x) => kept * x)
        for (let j = 0; j < n; j++) {
          const t = first + j
          const k = qkv![t * CHANNELS + (NK + head) * DK + d]! * decay![(t * 2 + 1) * NV + h]!
          for (let c = 0; c < DV; c++) row[c]! += k * v[j * DV + c]!
        }
        S1.set(row, d * DV)
      }
    }
  },
}
