import source from '../../shaders/attention_join.wgsl' with { type: 'text' }
import step from '../../shaders/lib/step.wgsl' with { type: 'text' }
import { record } from '../graph/graph.ts'
import type { Kernel } from '../graph/kernel.ts'
import { expectFormat, expectShape, type Tensor } from '../graph/tensor.ts'

export interface AttentionParts {
  readonly heads: number
  readonly headDim: number
  /** Parts into which the keys of a row are split. */
  readonly splits: number
}

/**
 * The attention of rows of which each part saw only a share of the keys (FlashDecoding, Dao et al. 2023).
 * x ['T', H · splits · (D + 4)]: of each part the sum of values, weighted by exp(score - top), the sum of weights, and
 * top, the part's greatest score; two values pad it. Returns y ['T', H · D].
 */
export function attentionJoin(
  x: Tensor,
  { heads, headDim, splits }: AttentionParts,
  format: 'f32' | 'f16' = 'f32',
): Tensor {
  expectShape('attention_join', 'x', x, ['T', heads * splits * (headDim + 4)])
  expectFormat('attention_join', 'x', x, 'f32')
  return record(kernel, {
    reads: { x },
    writes: { y: { shape: ['T', heads * headDim], format } },
    constants: { HEADS: heads, D: headDim, SPLITS: splits, WORKGROUP: headDim / 4 },
    workgroups: ({ T }) => [heads, T, 1],
  }).y
}

const kernel: Kernel = {
  name: 'attention_join',
  optional: true, // it serves attention_decode alone
  reads: ['x'],
  writes: ['y'],
  shader: [step, source],
  cost({ HEADS, D, SPLITS }, { T }) {
    const values = T * HEADS! * SPLITS! * (D! + 4)
    return { flops: 2 * values, bytes: 4 * (values + T * HEADS! * D!) }
  },
  cpu({ x, y }, { D, SPLITS }) {
    const wide = D! + 4
    for (let at = 0, head = 0; at < y!.length; at += D!, head++) {
      const parts = Array.from({ length: SPLITS! }, (_, i) => x!.subarray((head * SPLITS! + i) * wide))
      const top = parts.reduce((most, part) => Math.max(most, part[D! + 1]!), Number.NEGATIVE_INFINITY)
      const p = parts.map((part) => Math.exp(part[D! + 1]! - top))
      const weights = parts.reduce((sum, part, i) => sum + p[i]! * part[D!]!, 0)
      for (let d = 0; d < D!; d++) y![at + d] = parts.reduce((sum, part, i) => sum + p[i]! * part[d]!, 0) / weights
    }
  },
}
