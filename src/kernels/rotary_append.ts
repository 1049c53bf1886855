import rotary from '../../shaders/lib/rotary.wgsl' with { type: 'text' }
import segment from '../../shaders/lib/segment.wgsl' with { type: 'text' }
import step from '../../shaders/lib/step.wgsl' with { type: 'text' }
import source from '../../shaders/rotary_append.wgsl' with { type: 'text' }
import { ShapeError } from '../errors.ts'
import { record } from '../graph/graph.ts'
import { type Constants, fold, type Kernel, type View, type Views } from '../graph/kernel.ts'
import { tableShapes } from '../graph/segments.ts'
import { type Counts, expectFormat, expectShape, type Tensor } from '../graph/tensor.ts'

export interface RotaryAppend {
  readonly heads: number
  readonly kvHeads: number
  readonly headDim: number
  /** Pairs that turn are neighbours (2i, 2i + 1); false: halves (i, i + D/2). */
  readonly interleaved: boolean
}

/**
 * Rotary embedding of queries and keys, and cache append (RoFormer, Su et al. 2021).
 *
 * x ['T', (H + 2·KV)·D]: the queries of all heads, then the keys, then the values. rope ['T', D]: per token the cosines
 * of its D/2 angles, then their sines. Appends row [keys | values] to kv ['*', 2·KV·D] at kvStart + kvBefore + the
 * token's place in its segment. Returns q ['T', H·D].
 */
export function rotaryAppend(
  x: Tensor,
  rope: Tensor,
  kv: Tensor,
  { segments, segmentOf }: { readonly segments: Tensor; readonly segmentOf: Tensor },
  { heads, kvHeads, headDim, interleaved }: RotaryAppend,
): Tensor {
  const op = 'rotary_append'
  expectRotary(op, x, rope, kv, { segments, segmentOf }, { heads, kvHeads, headDim })
  if (headDim % 8 !== 0) throw new ShapeError(`${op}: a head has ${headDim} values, expected a multiple of 8`)
  return record<'q' | 'kv'>(kernel, {
    reads: { x, rope, segments, segmentOf },
    writes: { q: { shape: ['T', heads * headDim] }, kv },
    constants: { HEADS: heads, KV_HEADS: kvHeads, D: headDim, INTERLEAVED: interleaved ? 1 : 0, WORKGROUP },
    workgroups: ({ T }) => fold((T * (heads + 2 * kvHeads) * headDim) / 4, WORKGROUP),
  }).q
}

/** What `rotaryAppend` and `attentionDecode` are given. */
export function expectRotary(
  op: string,
  x: Tensor,
  rope: Tensor,
  kv: Tensor,
  { segments, segmentOf }: { readonly segments: Tensor; readonly segmentOf: Tensor },
  { heads, kvHeads, headDim }: Pick<RotaryAppend, 'heads' | 'kvHeads' | 'headDim'>,
): void {
  expectShape(op, 'x', x, ['T', (heads + 2 * kvHeads) * headDim])
  expectShape(op, 'rope', rope, ['T', headDim])
  expectShape(op, 'kv', kv, ['*', 2 * kvHeads * headDim])
  expectShape(op, 'segments', segments, tableShapes.segments)
  expectShape(op, 'segmentOf', segmentOf, tableShapes.segmentOf)
  expectFormat(op, 'x', x, 'f32', 'f16')
  expectFormat(op, 'rope', rope, 'f32')
  expectFormat(op, 'kv', kv, 'f32', 'f16')
}

const WORKGROUP = 64

const kernel: Kernel = {
  name: 'rotary_append',
  reads: ['x', 'rope', 'segments', 'segmentOf'],
  writes: ['q', 'kv'],
  shader: [step, segment, rotary, source],
  cost({ HEADS, KV_HEADS, D }, { T }) {
    const values = T * (HEADS! + 2 * KV_HEADS!) * D!
    return { flops: 3 * values, bytes: 8 * values }
  },
  cpu: rotate,
}

/** The twin: turned queries into q, turned keys and values into the cache. */
export function rotate({ x, rope, segments, segmentOf, q, kv }: Views, constants: Constants, { T }: Counts): void {
  const { HEADS, KV_HEADS, D, INTERLEAVED } = constants as Record<string, number>
  const width = (HEADS! + 2 * KV_HEADS!) * D!
  for (let t = 0; t < T; t++) {
    const [start, , , , , , kvStart, kvBefore] = segments!.subarray(segmentOf![t]! * 8) as unknown as number[]
    const row = (kvStart! + kvBefore! + t - start!) * 2 * KV_HEADS! * D!
    const angles = rope!.subarray(t * D!, (t + 1) * D!)
    for (let h = 0; h < HEADS! + KV_HEADS!; h++) {
      const head = x!.subarray(t * width + h * D!, t * width + (h + 1) * D!)
      const turned = h < HEADS! ? q!.subarray((t * HEADS! + h) * D!) : kv!.subarray(row + (h - HEADS!) * D!)
      turn(head, angles, turned, INTERLEAVED === 1)
    }
    kv!.set(x!.subarray((t + 1) * width - KV_HEADS! * D!, (t + 1) * width), row + KV_HEADS! * D!)
  }
}

/** y = x with pair i turned by angle i. */
function turn(x: View, angles: View, y: View, interleaved: boolean): void {
  const half = x.length / 2
  for (let i = 0; i < half; i++) {
    const [a, b] = interleaved ? [2 * i, 2 * i + 1] : [i, i + half]
    const [cos, sin] = [angles[i]!, angles[half + i]!]
    y[a] = x[a]! * cos - x[b]! * sin
    y[b] = x[b]! * cos + x[a]! * sin
  }
}
