import source from '../../shaders/attention_matrix.wgsl' with { type: 'text' }
import stage from '../../shaders/lib/attention_stage.wgsl' with { type: 'text' }
import units from '../../shaders/lib/attention_units.wgsl' with { type: 'text' }
import weights from '../../shaders/lib/attention_weights.wgsl' with { type: 'text' }
import type { Kernel } from '../graph/kernel.ts'
import { CHUNK } from '../graph/segments.ts'
import type { Target } from '../graph/target.ts'
import type { Counts, Format } from '../graph/tensor.ts'
import type { Attention, AttentionVariant } from './attention.ts'
import { only } from './lib/serve.ts'

const features = ['chromium-experimental-subgroup-matrix', 'shader-f16', 'subgroups'] as const

/** What may be chosen freely: no bit of y depends on it. */
export interface MatrixTile {
  /** Tokens × heads of a KV head. */
  readonly rows: number
  /** Side by side in o. */
  readonly subgroups: number
}

/** Keys under one softmax: the order of sums hangs on it. */
const KEYS = 32
/** Rows of a tile: higher ones share more, lower ones make more workgroups. */
const HEIGHTS = [16, 32, 64]
/** Workgroups that fill a large GPU. */
const ENOUGH = 256
/** What the shader has names for: vec4u of keys that an invocation carries, fragments of a row of q, of o. */
const MOST = { carried: 8, query: 16, rows: 4, columns: 2 }

export interface MatrixHeads extends Pick<Attention, 'heads' | 'kvHeads' | 'headDim'> {
  readonly cache: Format
}

/**
 * Attention on matrix units, after FlashAttention. Each run takes the highest tiles with which it fills the device.
 * `plain` gives the bindings, the pieces and the twin. Empty where the device has no units of one size or the heads do
 * not fit them.
 */
export function attentionMatrix(plain: Kernel, heads: MatrixHeads, target: Target): readonly AttentionVariant[] {
  const tiles = HEIGHTS.flatMap((rows) => highest(plain, heads, target, rows) ?? [])
  const distinct = [...new Map(tiles.map((tile) => [tile.constants.TOKENS, tile])).values()]
  const serving = ({ C }: Counts): AttentionVariant | undefined =>
    distinct.findLast(({ constants }) => C * (CHUNK / constants.TOKENS!) * heads.kvHeads >= ENOUGH) ?? distinct[0]
  return distinct.map((tile) => ({ ...tile, ...only(tile, (counts) => serving(counts) === tile) }))
}

/** The highest tile of at most so many rows, or if there is none the lowest. */
function highest(plain: Kernel, heads: MatrixHeads, target: Target, most: number): AttentionVariant | undefined {
  const fitting = [64, 32, 16, 8, 4, 2, 1].flatMap((tokens) =>
    [8, 4].flatMap((subgroups) => {
      const rows = (tokens * heads.heads) / heads.kvHeads
      const variant = matrixVariant(plain, heads, target, { rows, subgroups })
      return typeof variant === 'string' ? [] : { rows, variant }
    }),
  )
  return (fitting.find(({ rows }) => rows <= most) ?? fitting.at(-1))?.variant
}

/** One tile as a variant, or why it does not fit. */
export function matrixVariant(
  plain: Kernel,
  { heads, kvHeads, headDim, cache }: MatrixHeads,
  { features: has, matrix, subgroupSize, limits }: Target,
  { rows, subgroups }: MatrixTile,
): AttentionVariant | string {
  const missing = features.find((feature) => !has.has(feature))
  if (missing) return `the device has no ${missing}`
  if (!matrix || !subgroupSize) return 'the device has no f16 matrix units of one size'
  if (cache !== 'f16') return `the cache is ${cache}, expected f16`
  const { M, N, K } = matrix
  const tokens = (rows * kvHeads) / heads
  const threads = subgroups * subgroupSize
  const [RM, RN, query] = [rows / M, headDim / subgroups / N, headDim / K]
  const carried = (KEYS * headDim) / 8 / threads
  if ([CHUNK / tokens, tokens, RM, RN, KEYS / N, KEYS / K / 2, query, carried].some((n) => n % 1 !== 0))
    return `fragments of ${M} x ${N} x ${K} do not divide the tile`
  if (RM > MOST.rows || RN > MOST.columns)
    return `${RM} x ${RN} fragments per subgroup, at most ${MOST.rows} x ${MOST.columns}`
  if (query > MOST.query) return `${query} fragments in a row of q, at most ${MOST.query}`
  if ((RM * KEYS) / N > subgroups) return `${(RM * KEYS) / N} fragments of scores, at most ${subgroups}`
  if (carried > MOST.carried) return `${carried} vec4u carried by an invocation, at most ${MOST.carried}`
  if (threads > limits.invocations) return `${threads} invocations, at most ${limits.invocations}`
  const tile = Math.max(Math.max(2 * KEYS, rows) * (headDim / 8 + 1), M * (headDim / 4 + 1))
  const scores = Math.max(rows * (KEYS / 4 + 1), (subgroups * M * N) / 4)
  const bytes = 16 * (tile + scores + rows * Math.max(KEYS / 8 + 1, N / 4)) + 8 * rows + 16
  if (bytes > limits.workgroupBytes) return `${bytes} bytes of workgroup memory, at most ${limits.workgroupBytes}`
  return {
    kernel: {
      ...plain,
      name: 'attention_matrix',
      optional: true,
      packed: ['kv'],
      requires: features as unknown as readonly GPUFeatureName[],
      shader: [...plain.shader.slice(0, -1), units, stage, weights, source],
    },
    constants: {
      ...{ TOKENS: tokens, KEYS, SUBGROUPS: subgroups },
      ...{ FM: M, FN: N, FK: K, SUBGROUP: subgroupSize },
    },
    workgroups: ({ C }) => [kvHeads, CHUNK / tokens, C],
  }
}
