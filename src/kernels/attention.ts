import source from '../../shaders/attention.wgsl' with { type: 'text' }
import activation from '../../shaders/lib/activation.wgsl' with { type: 'text' }
import gateNone from '../../shaders/lib/gate_none.wgsl' with { type: 'text' }
import gateSigmoid from '../../shaders/lib/gate_sigmoid.wgsl' with { type: 'text' }
import keys from '../../shaders/lib/keys.wgsl' with { type: 'text' }
import segment from '../../shaders/lib/segment.wgsl' with { type: 'text' }
import { ShapeError } from '../errors.ts'
import { graphOf, type Made, record } from '../graph/graph.ts'
import type { Constants, Kernel, View, Views, Workgroups } from '../graph/kernel.ts'
import { CHUNK, tableShapes } from '../graph/segments.ts'
import { type Counts, expectFormat, expectShape, last, type Tensor } from '../graph/tensor.ts'
import { attentionMatrix } from './attention_matrix.ts'
import { attentionTiled } from './attention_tiled.ts'
import { sigmoid } from './lib/activation.ts'

export interface Attention {
  readonly heads: number
  readonly kvHeads: number
  readonly headDim: number
  /** A token sees its segment's tokens up to itself; false: all of them. Default true. */
  readonly causal?: boolean
  /** Packed projection ['T', WIDE] whose row begins with [query D | gate D] of each head: y *= sigmoid(gate). */
  readonly gate?: Tensor
  /** Of y. */
  readonly format?: 'f32' | 'f16'
  /** Default: on hardware the first of 'matrix' and 'tiled' that fits, else 'plain'. */
  readonly variant?: 'plain' | 'tiled' | 'matrix'
}

/**
 * Grouped-query attention over segments: y[t, h] = softmax(q[t, h] Kᵀ · D^-0.5) V, then times sigmoid(gate[t, h]).
 *
 * q ['T', H·D]; kv ['*', 2·KV·D], a row being the keys of all KV heads, then their values. Token i of a segment sees
 * the cache rows of the prefix, then those from kvStart on up to its own. Query head h reads KV head ⌊h / (H / KV)⌋.
 * Scores, softmax and sums are f32, in an order that depends on a key's place among the token's own keys only.
 * Returns y ['T', H·D]. Source: transformers' eager_attention_forward; online softmax as in arXiv:1805.02867.
 */
export function attention(
  q: Tensor,
  kv: Tensor,
  { segments, chunks }: { readonly segments: Tensor; readonly chunks: Tensor },
  { heads, kvHeads, headDim, causal = true, gate, format = 'f32', variant }: Attention,
): Tensor {
  const op = 'attention'
  expectShape(op, 'q', q, ['T', heads * headDim])
  expectShape(op, 'kv', kv, ['*', 2 * kvHeads * headDim])
  expectShape(op, 'segments', segments, tableShapes.segments)
  expectShape(op, 'chunks', chunks, tableShapes.chunks)
  expectFormat(op, 'q', q, 'f32', 'f16')
  expectFormat(op, 'kv', kv, 'f32', 'f16')
  if (heads % kvHeads !== 0) throw new ShapeError(`${op}: ${heads} heads do not share ${kvHeads} KV heads evenly`)
  if (headDim % 4 !== 0) throw new ShapeError(`${op}: a head has ${headDim} values, expected a multiple of 4`)
  const least = 2 * heads * headDim
  if (gate && (gate.shape[0] !== 'T' || last(gate) < least || last(gate) % 4 !== 0))
    throw new ShapeError(
      `${op}: gate (${gate.label}) has shape [${gate.shape}], expected [T, n] with n a multiple of 4 from ${least} on`,
    )
  const { target } = graphOf(op, { q, kv, segments, chunks })
  const plain: AttentionVariant = {
    kernel: gate ? gated : ungated,
    constants: { CHUNK, KEYS: 8 },
    workgroups: ({ C }) => [C, heads, 1],
  }
  const sizes = { heads, kvHeads, headDim }
  const variants = {
    matrix: attentionMatrix(plain.kernel, { ...sizes, cache: kv.format }, target),
    tiled: attentionTiled(plain.kernel, sizes, target.limits),
    plain: [plain],
  }
  if (variant && variants[variant].length === 0)
    throw new ShapeError(`${op}: no tiles for ${heads}/${kvHeads} heads of ${headDim} values; leave the variant open`)
  const fast = (['matrix', 'tiled'] as const).find(
    (name) => variants[name].length > 0 && !target.software && !target.disabled.has(`attention_${name}`),
  )
  const made: Made = { shape: q.shape, format }
  const chosen: readonly AttentionVariant[] = variants[variant ?? fast ?? 'plain']
  return chosen.reduce<Tensor | Made>((y, { kernel, constants, workgroups }) => {
    const fixed = {
      HEADS: heads,
      KV_HEADS: kvHeads,
      D: headDim,
      SCALE: headDim ** -0.5,
      CAUSAL: causal ? 1 : 0,
      GATE_WIDTH: gate ? last(gate) : 0,
      Y_BINDING: kernel.reads.length,
    }
    const reads = { q, kv, segments, chunks, ...(gate && { gate }) }
    return record<'y'>(kernel, { reads, writes: { y }, constants: { ...fixed, ...constants }, workgroups }).y
  }, made) as Tensor
}

/** One algorithm: its kernel, its tile and its grid. */
export interface AttentionVariant {
  readonly kernel: Kernel
  readonly constants: Readonly<Record<string, number>>
  readonly workgroups: (counts: Counts) => Workgroups
}

const ungated: Kernel = {
  name: 'attention',
  reads: ['q', 'kv', 'segments', 'chunks'],
  writes: ['y'],
  shader: [segment, keys, gateNone, source],
  // The prefixes are the host's affair: this counts one row of T tokens and no prefix.
  cost({ HEADS, KV_HEADS, D, CAUSAL }, { T }) {
    const pairs = CAUSAL ? (T * (T + 1)) / 2 : T * T
    return { flops: 4 * HEADS! * D! * pairs, bytes: 8 * T * (HEADS! + KV_HEADS!) * D! }
  },
  cpu: attend,
}

const gated: Kernel = {
  ...ungated,
  reads: [...ungated.reads, 'gate'],
  shader: [segment, keys, activation, gateSigmoid, source],
}

/** The twin: y from the queries and what the cache holds. */
export function attend({ q, kv, segments, gate, y }: Views, constants: Constants): void {
  const { HEADS, KV_HEADS, D, SCALE, CAUSAL, GATE_WIDTH } = constants as Record<string, number>
  const width = 2 * KV_HEADS! * D! // of a cache row: keys, then values
  for (let i = 0; i < segments!.length; i += 8) {
    const [start, length, , , , prefixLength, , kvBefore] = segments!.subarray(i, i + 8)
    for (let t = 0; t < length!; t++) {
      const visible = prefixLength! + kvBefore! + (CAUSAL ? t + 1 : length!)
      const rows = cacheRows(segments!.subarray(i, i + 8), visible)
      const p = new Float64Array(visible)
      const o = new Float64Array(D!)
      for (let h = 0; h < HEADS!; h++) {
        const at = ((start! + t) * HEADS! + h) * D!
        const key = Math.floor(h / (HEADS! / KV_HEADS!)) * D!
        const value = KV_HEADS! * D! + key
        for (let n = 0; n < visible; n++) p[n] = SCALE! * dot(q!, at, kv!, rows[n]! * width + key, D!)
        softmax(p)
        o.fill(0)
        for (let n = 0; n < visible; n++) addScaled(o, p[n]!, kv!, rows[n]! * width + value)
        for (let d = 0; d < D!; d++)
          y![at + d] = gate ? o[d]! * sigmoid(gate[(start! + t) * GATE_WIDTH! + (2 * h + 1) * D! + d]!) : o[d]!
      }
    }
  }
}

/** Where the first n keys of a segment's tokens lie. */
export function cacheRows([, , , , prefixStart, prefixLength, kvStart]: View, n: number): Int32Array {
  return Int32Array.from({ length: n }, (_, i) => (i < prefixLength! ? prefixStart! + i : kvStart! + i - prefixLength!))
}

export function dot(a: View, i: number, b: View, j: number, n: number): number {
  let sum = 0
  for (let k = 0; k < n; k++) sum += a[i + k]! * b[j + k]!
  return sum
}

/** y += p x, x from a place in `from` on. */
export function addScaled(y: Float64Array, p: number, from: View, at: number): void {
  for (let d = 0; d < y.length; d++) y[d]! += p * from[at + d]!
}

function softmax(x: Float64Array): void {
  let top = x[0]!
  for (const v of x) top = Math.max(top, v)
  let sum = 0
  for (let i = 0; i < x.length; i++) sum += x[i] = Math.exp(x[i]! - top)
  for (let i = 0; i < x.length; i++) x[i]! /= sum
}
