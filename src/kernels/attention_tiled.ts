import source from '../../shaders/attention_tiled.wgsl' with { type: 'text' }
import type { Kernel } from '../graph/kernel.ts'
import { CHUNK } from '../graph/segments.ts'
import { defaultLimits } from '../graph/target.ts'
import type { Format } from '../graph/tensor.ts'
import type { Attention, AttentionVariant } from './attention.ts'

const LANES = 8
const MOST_ROWS = 16

/**
 * Attention with keys and values in workgroup memory, shared by the query heads of a KV head and by several tokens.
 * `plain` gives the bindings, the pieces and the twin. Undefined where the heads do not fit the tiles.
 */
export function attentionTiled(
  plain: Kernel,
  { heads, kvHeads, headDim, cache }: Attention & { readonly cache: Format },
): AttentionVariant | undefined {
  const headsOfKv = heads / kvHeads
  const tokens = 2 ** Math.max(0, Math.floor(Math.log2(MOST_ROWS / headsOfKv)))
  const threads = tokens * headsOfKv * LANES
  const bytesPerKey = 2 * headDim * (cache === 'f16' ? 2 : 4) + threads * 4
  const keys = [8, 4].find((n) => n * bytesPerKey <= defaultLimits.workgroupBytes)
  if (!keys || headDim % (4 * LANES) !== 0 || threads > defaultLimits.invocations) return undefined
  return {
    kernel: { ...plain, name: 'attention_tiled', shader: [...plain.shader.slice(0, -1), source] },
    constants: { TOKENS: tokens, LANES, KEYS: keys },
    workgroups: ({ C }) => [C, CHUNK / tokens, kvHeads],
  }
}
