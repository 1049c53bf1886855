import source from '../../shaders/attention_tiled.wgsl' with { type: 'text' }
import slices from '../../shaders/lib/attention_slice.wgsl' with { type: 'text' }
import patch from '../../shaders/lib/patch.wgsl' with { type: 'text' }
import type { Kernel } from '../graph/kernel.ts'
import { CHUNK } from '../graph/segments.ts'
import type { Limits } from '../graph/target.ts'
import type { Counts } from '../graph/tensor.ts'
import type { Attention, AttentionVariant } from './attention.ts'
import { only } from './lib/serve.ts'

// Rows are tokens × heads of a KV head. None of these changes a bit.
const LOW_ROWS = 16 // to sweep: 8, 16, 32
const HIGH_ROWS = 64 // to sweep: 32, 64
const SLICES = [32, 16, 8] // columns of q and K in workgroup memory at once: the first that fits
const VALUES = [16, 8, 4] // rows of V in workgroup memory at once: the first that fits
const ENOUGH = 256 // workgroups that fill a large GPU; to sweep: 128, 256, 512

/**
 * Attention with keys and values in workgroup memory, shared by the query heads of a KV head and by several tokens:
 * low tiles, and high ones for runs with enough tokens to fill the device with them. `plain` gives the bindings, the
 * pieces and the twin. Empty where the heads do not fit the tiles.
 */
export function attentionTiled(
  plain: Kernel,
  heads: Pick<Attention, 'heads' | 'kvHeads' | 'headDim'>,
  limits: Limits,
): readonly AttentionVariant[] {
  const [low, high] = [LOW_ROWS, HIGH_ROWS].map((rows) => {
    const tokens = tokensOf(rows, heads.heads / heads.kvHeads)
    return tokens && variant(plain, heads, tokens, limits)
  })
  if (!low) return []
  if (!high || high.constants.TOKENS === low.constants.TOKENS) return [low]
  const fills = ({ C }: Counts): boolean => C * (CHUNK / high.constants.TOKENS!) * heads.kvHeads >= ENOUGH
  return [
    { ...low, ...only(low, (counts) => !fills(counts)) },
    { ...high, ...only(high, fills) },
  ]
}

/** Tokens, a divisor of a chunk, whose rows are a multiple of 4 and at most `rows` if that is possible. */
function tokensOf(rows: number, headsOfKv: number): number | undefined {
  const possible = [64, 32, 16, 8, 4, 2, 1].filter((tokens) => (tokens * headsOfKv) % 4 === 0)
  return possible.find((tokens) => tokens * headsOfKv <= rows) ?? possible.at(-1)
}

function variant(
  plain: Kernel,
  { heads, kvHeads, headDim }: Pick<Attention, 'heads' | 'kvHeads' | 'headDim'>,
  tokens: number,
  limits: Limits,
): AttentionVariant | undefined {
  const KEYS = headDim % 64 === 0 ? 64 : 32 // the order of sums hangs on it
  const [quads, columns] = [(tokens * heads) / kvHeads / 4, KEYS / 4]
  const free = limits.workgroupBytes / 16 - (KEYS + columns) * (quads + 1) // vec4s beside p and tops
  const SLICE = SLICES.find((n) => headDim % n === 0 && n <= 8 * quads && n * (quads + columns + 1) <= free)
  const VALUE = VALUES.find((n) => (n * headDim) / 4 <= Math.min(free, 8 * quads * columns))
  const fits = headDim % KEYS === 0 && headDim <= 4 * KEYS && quads * columns <= limits.invocations
  if (!fits || !SLICE || !VALUE) return undefined
  return {
    kernel: { ...plain, name: 'attention_tiled', shader: [...plain.shader.slice(0, -1), patch, slices, source] },
    constants: { TOKENS: tokens, KEYS, SLICE, VALUES: VALUE },
    workgroups: ({ C }) => [kvHeads, CHUNK / tokens, C],
  }
}
