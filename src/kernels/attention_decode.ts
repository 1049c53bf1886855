import source from '../../shaders/attention_decode.wgsl' with { type: 'text' }
import keys from '../../shaders/lib/keys.wgsl' with { type: 'text' }
import rotary from '../../shaders/lib/rotary.wgsl' with { type: 'text' }
import segment from '../../shaders/lib/segment.wgsl' with { type: 'text' }
import step from '../../shaders/lib/step.wgsl' with { type: 'text' }
import { graphOf, record } from '../graph/graph.ts'
import type { Kernel } from '../graph/kernel.ts'
import type { Tensor } from '../graph/tensor.ts'
import { attend, attention } from './attention.ts'
import { expectRotary, type RotaryAppend, rotaryAppend, rotate } from './rotary_append.ts'

export interface AttentionDecode extends RotaryAppend {
  /** Of y. */
  readonly format?: 'f32' | 'f16'
  /** Default: 'fused' on hardware where the heads fit. */
  readonly variant?: 'apart' | 'fused'
}

/**
 * `rotaryAppend`, then causal `attention`, for a run in which every segment has one token: in one dispatch, or apart.
 * x ['T', (H + 2·KV)·D]; rope ['T', D]; appends to kv ['*', 2·KV·D]. Returns y ['T', H·D].
 */
export function attentionDecode(
  x: Tensor,
  rope: Tensor,
  kv: Tensor,
  run: Readonly<Record<'segments' | 'segmentOf' | 'chunks', Tensor>>,
  { format = 'f32', variant, ...shape }: AttentionDecode,
): Tensor {
  const op = 'attention_decode'
  const { heads, kvHeads, headDim, interleaved } = shape
  const { segments, segmentOf } = run
  expectRotary(op, x, rope, kv, run, shape)
  const { target } = graphOf(op, { x, rope, segments })
  const fits = headDim % 8 === 0 && WORKGROUP % (headDim / 8) === 0
  const fast = !target.software && !target.disabled.has(kernel.name) && fits ? 'fused' : 'apart'
  if ((variant ?? fast) === 'apart')
    return attention(rotaryAppend(x, rope, kv, run, shape), kv, run, { heads, kvHeads, headDim, format })
  return record<'y' | 'kv'>(kernel, {
    reads: { x, rope, segments, segmentOf },
    writes: { y: { shape: ['T', heads * headDim], format }, kv },
    constants: {
      ...{ HEADS: heads, KV_HEADS: kvHeads, D: headDim, INTERLEAVED: interleaved ? 1 : 0 },
      ...{ SCALE: headDim ** -0.5, CAUSAL: 1, KEYS, WORKGROUP },
      SPACE: Math.max(KEYS * (headDim / 8 + 1), 8 * WORKGROUP),
    },
    workgroups: ({ T }) => [heads, T, 1],
  }).y
}

// To sweep: KEYS 64, 128, 256 and WORKGROUP 128, 256.
const KEYS = 128
const WORKGROUP = 256

const kernel: Kernel = {
  name: 'attention_decode',
  optional: true,
  reads: ['x', 'rope', 'segments', 'segmentOf'],
  writes: ['y', 'kv'],
  shader: [step, segment, keys, rotary, source],
  // The cache is the host's affair: this counts none of it.
  cost({ HEADS, KV_HEADS, D }, { T }) {
    const values = T * (HEADS! + 2 * KV_HEADS!) * D!
    return { flops: 8 * values, bytes: 8 * values }
  },
  cpu(views, constants, counts) {
    const q = new Float32Array(counts.T * constants.HEADS! * constants.D!)
    rotate({ ...views, q }, constants, counts)
    attend({ ...views, q }, { ...constants, GATE_WIDTH: 0 })
  },
}
