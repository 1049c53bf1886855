import segment from '../../shaders/lib/segment.wgsl' with { type: 'text' }
import step from '../../shaders/lib/step.wgsl' with { type: 'text' }
import source from '../../shaders/qk_norm_rope.wgsl' with { type: 'text' }
import { ShapeError } from '../errors.ts'
import { graphOf, record } from '../graph/graph.ts'
import { type Constants, fold, type Kernel, type View, type Views } from '../graph/kernel.ts'
import { tableShapes } from '../graph/segments.ts'
import { expectFormat, expectShape, type Tensor } from '../graph/tensor.ts'
import { bothSummings, pickSumming, type Summing, slicesOf } from './lib/slices.ts'

export interface QkNormRope {
  readonly heads: number
  readonly kvHeads: number
  readonly headDim: number
  /** Leading values of a head that are turned, in pairs (i, i + rotary / 2). */
  readonly rotary: number
  readonly eps: number
  /** Of q. Default f32. */
  readonly format?: 'f32' | 'f16'
  /** Default: 'shared' on hardware. */
  readonly summing?: Summing
}

/**
 * Query and key norms, rotary embedding and cache append of Qwen3.5's gated attention.
 *
 * x ['T', 2·H·D + 2·KV·D]: per query head [query D | gate D], then the keys, then the values of all KV heads.
 * norms [2, D]: q_norm and k_norm as stored; 1 + w is what multiplies. rope ['T', rotary]: rows of `ropeTable`.
 * Appends row [keys | values] to kv ['*', 2·KV·D] at kvStart + kvBefore + the token's place in its segment.
 * Returns q ['T', H·D]. Source: transformers' Qwen3_5Attention.
 */
export function qkNormRope(
  x: Tensor,
  norms: Tensor,
  rope: Tensor,
  kv: Tensor,
  { segments, segmentOf }: { readonly segments: Tensor; readonly segmentOf: Tensor },
  { heads, kvHeads, headDim, rotary, eps, format = 'f32', summing }: QkNormRope,
): Tensor {
  const op = 'qk_norm_rope'
  expectShape(op, 'x', x, ['T', 2 * (heads + kvHeads) * headDim])
  expectShape(op, 'norms', norms, [2, headDim])
  expectShape(op, 'rope', rope, ['T', rotary])
  expectShape(op, 'kv', kv, ['*', 2 * kvHeads * headDim])
  expectShape(op, 'segments', segments, tableShapes.segments)
  expectShape(op, 'segmentOf', segmentOf, tableShapes.segmentOf)
  expectFormat(op, 'x', x, 'f32', 'f16')
  expectFormat(op, 'norms', norms, 'f32')
  expectFormat(op, 'rope', rope, 'f32')
  expectFormat(op, 'kv', kv, 'f32', 'f16')
  if (headDim % 4 !== 0 || rotary % 8 !== 0 || rotary > headDim)
    throw new ShapeError(
      `${op}: a head has ${headDim} values of which ${rotary} turn, expected multiples of 4 and 8, at most all of them`,
    )
  const form = summing ?? pickSumming(graphOf(op, { x, norms, rope, segments }).target, kernels)
  const tile =
    form === 'alone'
      ? { SLICES: headDim % 32 === 0 ? 8 : 1, WORKGROUP: 64 }
      : { SLICES: slicesOf(headDim / 4, MOST_SLICES), WORKGROUP: SHARED_WORKGROUP }
  return record<'q' | 'kv'>(kernels[form], {
    reads: { x, norms, rope, segments, segmentOf },
    writes: { q: { shape: ['T', heads * headDim], format }, kv },
    constants: {
      HEADS: heads,
      KV_HEADS: kvHeads,
      D: headDim,
      ROTARY: rotary,
      EPS: eps,
      ...tile,
    },
    workgroups: ({ T }) => fold(T * (heads + 2 * kvHeads) * tile.SLICES, tile.WORKGROUP),
  }).q
}

const MOST_SLICES = 32 // to sweep: 16, 32, 64
const SHARED_WORKGROUP = 128 // to sweep: 64, 128, 256

const kernel: Kernel = {
  name: 'qk_norm_rope',
  reads: ['x', 'norms', 'rope', 'segments', 'segmentOf'],
  writes: ['q', 'kv'],
  shader: [step, segment, source],
  cost({ HEADS, KV_HEADS, D }, { T }) {
    const values = T * (HEADS! + 2 * KV_HEADS!) * D!
    return { flops: 8 * values, bytes: 8 * values }
  },
  cpu({ x, norms, rope, segments, segmentOf, q, kv }: Views, constants, { T }) {
    const { HEADS, KV_HEADS, D } = constants as Record<string, number>
    const width = 2 * (HEADS! + KV_HEADS!) * D!
    const [qNorm, kNorm] = [norms!.subarray(0, D!), norms!.subarray(D!)]
    for (let t = 0; t < T; t++) {
      const [start, , , , , , kvStart, kvBefore] = segments!.subarray(segmentOf![t]! * 8) as unknown as number[]
      const row = kv!.subarray((kvStart! + kvBefore! + t - start!) * 2 * KV_HEADS! * D!)
      const angles = rope!.subarray(t * constants.ROTARY!)
      const head = (column: number): View => x!.subarray(t * width + column, t * width + column + D!)
      for (let h = 0; h < HEADS!; h++)
        normRope(head(h * 2 * D!), qNorm!, angles, q!.subarray((t * HEADS! + h) * D!), constants)
      const keys = 2 * HEADS! * D!
      for (let h = 0; h < KV_HEADS!; h++) normRope(head(keys + h * D!), kNorm!, angles, row.subarray(h * D!), constants)
      row.set(x!.subarray(t * width + keys + KV_HEADS! * D!, (t + 1) * width), KV_HEADS! * D!)
    }
  },
}

/** y = rope(x / sqrt(mean(x^2) + EPS) * (1 + w)) for one head; `angles` are its cosines, then its sines. */
function normRope(x: View, w: View, angles: View, y: View, { D, ROTARY, EPS }: Constants): void {
  let squares = 0
  for (const v of x) squares += v * v
  const scale = 1 / Math.sqrt(squares / D! + EPS!)
  const normed = Array.from(x, (v, i) => v * scale * (1 + w[i]!))
  const half = ROTARY! / 2
  for (let i = 0; i < D!; i++) {
    if (i < half) y[i] = normed[i]! * angles[i]! - normed[i + half]! * angles[half + i]!
    else if (i < 2 * half) y[i] = normed[i]! * angles[i - half]! + normed[i - half]! * angles[i]!
    else y[i] = normed[i]!
  }
}

const kernels = bothSummings(kernel)
