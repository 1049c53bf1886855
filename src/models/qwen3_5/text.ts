import { Graph } from '../../graph/graph.ts'
import { tableShapes } from '../../graph/segments.ts'
import type { Target } from '../../graph/target.ts'
import type { Format, Tensor } from '../../graph/tensor.ts'
import { attention } from '../../kernels/attention.ts'
import { convPrepare } from '../../kernels/conv_prepare.ts'
import { deltaForm, deltaFormat, deltaRule } from '../../kernels/delta_rule.ts'
import { embedding } from '../../kernels/embedding.ts'
import { gatedRmsNorm } from '../../kernels/gated_rms_norm.ts'
import type { Parts } from '../../kernels/lib/parts.ts'
import { linear, linearParts } from '../../kernels/linear.ts'
import { qkNormRope } from '../../kernels/qk_norm_rope.ts'
import { addRmsNorm, gatherAddRmsNorm, rmsNorm } from '../../kernels/rms_norm.ts'
import type { TextConfig } from './config.ts'
import type { LayerPool } from './pools.ts'
import type { AttentionWeights, DeltaWeights, LayerWeights, TextWeights } from './weights.ts'

/** What a run of the text model reads besides weights. T tokens of S segments, R of them read out. */
export interface TextInputs {
  readonly table: Tensor // ['T', H]: the distinct embedding rows of this run, as stored
  readonly ids: Tensor // ['T']: row of `table` for each token, or ALSO + row of the images'
  readonly rope: Tensor // ['T', rotary]: cos | sin
  readonly segments: Tensor // ['S', 8]
  readonly segmentOf: Tensor // ['T']
  readonly chunks: Tensor // ['C', 2]
  readonly read: Tensor // ['R']: the tokens to read out
}

export function textInputs(graph: Graph, c: TextConfig, tableFormat: Format): TextInputs {
  return {
    table: graph.input('table', ['T', c.hidden], tableFormat),
    ids: graph.input('ids', ['T'], 'u32'),
    rope: graph.input('rope', ['T', c.attention.headDim * c.attention.partialRotaryFactor]),
    segments: graph.input('segments', tableShapes.segments, 'u32'),
    segmentOf: graph.input('segmentOf', tableShapes.segmentOf, 'u32'),
    chunks: graph.input('chunks', tableShapes.chunks, 'u32'),
    read: graph.input('read', ['R'], 'u32'),
  }
}

/** From embedding rows, and those of `images` ['*', H], to `logits` ['R', L]: products with the rows of `head` [L, H]. */
export function textGraph(
  target: Target,
  c: TextConfig,
  w: TextWeights,
  pools: readonly LayerPool[],
  head: Tensor,
  images?: Tensor,
): Graph {
  const graph = new Graph(target)
  const hidden = textModel(graph, c, w, pools, textInputs(graph, c, w.embedding.format), images)
  graph.output('logits', linear(hidden, head))
  return graph
}

/** Everything that the layers share. */
interface Context {
  readonly graph: Graph
  readonly c: TextConfig
  readonly run: TextInputs
  readonly operand: Target['operand']
}

/**
 * The residual stream x ['T', H] in f32 (['R', H] behind the last mixer), and what is still to be added to it: parts of a
 * product that was split along K, which the next norm adds on its way.
 */
interface Stream {
  readonly x: Tensor
  readonly parts?: Parts
}

/**
 * Qwen3.5's text model. Returns the final norm at the tokens to be read, ['R', H]; logits are its products with rows of
 * the LM head.
 */
export function textModel(
  graph: Graph,
  c: TextConfig,
  w: TextWeights,
  pools: readonly LayerPool[],
  run: TextInputs,
  images?: Tensor,
): Tensor {
  const context: Context = { graph, c, run, operand: graph.target.operand }
  let stream: Stream = { x: graph.name(embedding(run.ids, run.table, images), 'embed') }
  w.layers.forEach((layer, i) => {
    stream = decoderLayer(context, layer, pools[i]!, stream, { at: `layers.${i}`, last: i + 1 === w.layers.length })
  })
  return graph.name(normed(context, stream, w.norm).y, 'norm')
}

/**
 * x += mixer(norm(x)); x += down(silu(gate norm(x)) · up norm(x)). Tokens meet in mixers alone: behind the last one go on
 * those that are read, through the kernels of all rows, so that they have the same bits.
 */
function decoderLayer(
  context: Context,
  w: LayerWeights,
  pool: LayerPool,
  stream: Stream,
  { at, last }: { readonly at: string; readonly last: boolean },
): Stream {
  const { graph, operand, run } = context
  const before = normed(context, stream, w.inputNorm)
  const mixed =
    w.mixer.kind === 'linear'
      ? gatedDeltaNet(context, w.mixer, pool, before.y)
      : gatedAttention(context, w.mixer, pool, before.y)
  const mixer = linearParts(mixed, w.mixer.out)
  graph.name(mixer.sums, `${at}.mixer`)
  const between = last
    ? gatherAddRmsNorm(before.x, mixer, w.postNorm, run.read, zeroCentred(context))
    : addRmsNorm(before.x, mixer, w.postNorm, zeroCentred(context))
  const activated = linear(between.y, w.gateUp, { finish: 'swiglu', format: operand, rows: 'many' })
  const mlp = linearParts(activated, w.down, { rows: 'many' })
  graph.name(mlp.sums, `${at}.mlp`)
  return { x: between.x, parts: mlp }
}

/** The stream with its parts added, and its norm. */
function normed(context: Context, { x, parts }: Stream, w: Tensor): { x: Tensor; y: Tensor } {
  if (parts) return addRmsNorm(x, parts, w, zeroCentred(context))
  return { x, y: rmsNorm(x, w, zeroCentred(context)) }
}

/** S ← e^g S + k (β (v - Sᵀk))ᵀ,  o = Sᵀq,  normed and gated by z. */
function gatedDeltaNet({ graph, c, run, operand }: Context, w: DeltaWeights, pool: LayerPool, h: Tensor): Tensor {
  if (pool.kind !== 'linear') throw new TypeError('gated delta net: the pool is not of a linear layer')
  const { keyHeads, keyWidth, valueHeads, valueWidth } = c.delta
  const channels = 2 * keyHeads * keyWidth + valueHeads * valueWidth
  const projected = linear(h, w.in) // q k v | z | b | a
  const form = deltaForm(graph.target, c.delta)
  const { qkv, gates } = convPrepare(projected, w.conv, w.gates, pool.conv, run, {
    ...c.delta,
    format: deltaFormat(form),
  })
  const o = deltaRule(qkv, gates, pool.state, run, c.delta, { form })
  const z = { of: projected, column: channels }
  return gatedRmsNorm(o, z, w.norm, { eps: c.eps, format: operand })
}

/** softmax(q kᵀ / √D) v · σ(gate), with query head h on KV head ⌊h / groups⌋. */
function gatedAttention({ c, run, operand }: Context, w: AttentionWeights, pool: LayerPool, h: Tensor): Tensor {
  if (pool.kind !== 'full') throw new TypeError('gated attention: the pool is not of a full layer')
  const { heads, kvHeads, headDim, partialRotaryFactor } = c.attention
  const shape = { heads, kvHeads, headDim }
  const projected = linear(h, w.in) // per head q, gate | k | v
  const rotary = headDim * partialRotaryFactor
  const q = qkNormRope(projected, w.norms, run.rope, pool.kv, run, { ...shape, rotary, eps: c.eps, format: operand })
  return attention(q, pool.kv, run, { ...shape, gate: projected, format: operand })
}

/** y = x / rms(x) · (1 + w): Qwen3.5 stores these weights around zero. */
const zeroCentred = ({ c, operand }: Context) => ({ eps: c.eps, offset: 1, format: operand }) as const
