import { Graph } from '../../graph/graph.ts'
import { tableShapes } from '../../graph/segments.ts'
import type { Target } from '../../graph/target.ts'
import { reshaped, type Tensor } from '../../graph/tensor.ts'
import { attention } from '../../kernels/attention.ts'
import { interpolateRows } from '../../kernels/interpolate_rows.ts'
import { addLayerNorm, layerNorm } from '../../kernels/layer_norm.ts'
import type { Parts } from '../../kernels/lib/parts.ts'
import { linear, linearParts } from '../../kernels/linear.ts'
import { rotaryAppend } from '../../kernels/rotary_append.ts'
import { scatterRows } from '../../kernels/scatter_rows.ts'
import type { VisionConfig } from './config.ts'
import type { VisionBlock, VisionWeights } from './vision_weights.ts'

/** What the tower keeps on the device beside its weights. */
export interface VisionMemory {
  readonly patch: Tensor // [C, 3 · patch²]: stillPatch()
  /** ['*', 2C]: keys and values of a run's patches, one layer after another. */
  readonly kv: Tensor
  /** ['*', out] f32: image tokens, for the text model. */
  readonly features: Tensor
}

/** T patches of S images; R = T / merge² image tokens. */
function visionInputs(graph: Graph, c: VisionConfig) {
  return {
    patches: graph.input('patches', ['T', 3 * c.patch ** 2], graph.target.operand),
    taps: graph.input('taps', ['T', 4], 'u32'),
    weights: graph.input('weights', ['T', 4]),
    rope: graph.input('rope', ['T', c.headDim]),
    segments: graph.input('segments', tableShapes.segments, 'u32'),
    segmentOf: graph.input('segmentOf', tableShapes.segmentOf, 'u32'),
    chunks: graph.input('chunks', tableShapes.chunks, 'u32'),
    rows: graph.input('rows', ['R'], 'u32'), // of memory.features, for each image token
  }
}

/** One run of the tower: what it makes of each image token goes to memory.features. */
export function visionGraph(target: Target, c: VisionConfig, w: VisionWeights, memory: VisionMemory): Graph {
  const graph = new Graph(target)
  const run = visionInputs(graph, c)
  scatterRows(visionTower(graph, c, w, memory, run), run.rows, memory.features)
  return graph
}

/** Everything that the blocks share. */
interface Context {
  readonly graph: Graph
  readonly c: VisionConfig
  readonly kv: Tensor
  readonly run: ReturnType<typeof visionInputs>
}

/** The residual stream x ['T', C] in f32, and a product with its bias that the next norm adds on its way. */
interface Stream {
  readonly x: Tensor
  readonly parts?: Parts
  readonly bias?: Tensor
}

/** Qwen3.5's vision transformer: image tokens ['R', out] from patches. */
function visionTower(
  graph: Graph,
  c: VisionConfig,
  w: VisionWeights,
  { patch, kv }: VisionMemory,
  run: Context['run'],
): Tensor {
  const context: Context = { graph, c, kv, run }
  const embedded = linear(run.patches, patch, { bias: w.patchBias })
  let stream: Stream = { x: graph.name(interpolateRows(embedded, w.positions, run), 'visual.embed') }
  w.blocks.forEach((block, i) => {
    stream = visionBlock(context, block, stream, `visual.blocks.${i}`)
  })
  return graph.name(merger(context, w.merger, stream), 'visual.merger')
}

/** x += proj(attention(norm1 x)); x += down(gelu_tanh(up(norm2 x))) */
function visionBlock(context: Context, w: VisionBlock, stream: Stream, at: string): Stream {
  const { graph } = context
  const format = graph.target.operand
  const before = normed(context, stream, w.norm1)
  const mixed = linearParts(imageAttention(context, w, before.y), w.proj.w)
  graph.name(mixed.sums, `${at}.attn`)
  const between = normed(context, { x: before.x, parts: mixed, bias: w.proj.bias }, w.norm2)
  const activated = linear(between.y, w.up.w, { bias: w.up.bias, finish: 'gelu_tanh', format })
  const mlp = linearParts(activated, w.down.w)
  graph.name(mlp.sums, `${at}.mlp`)
  return { x: between.x, parts: mlp, bias: w.down.bias }
}

/** softmax(q kᵀ / √D) v, in which all patches of an image see each other; q and k turned by row and column. */
function imageAttention({ graph, c, kv, run }: Context, w: VisionBlock, h: Tensor): Tensor {
  const shape = { heads: c.heads, kvHeads: c.heads, headDim: c.headDim }
  const qkv = linear(h, w.qkv.w, { bias: w.qkv.bias })
  const q = rotaryAppend(qkv, run.rope, kv, run, { ...shape, interleaved: false })
  return attention(q, kv, run, { ...shape, causal: false, format: graph.target.operand })
}

/** out(gelu(in(norm x))), in which the patches of a token lie one after another. */
function merger(context: Context, w: VisionWeights['merger'], stream: Stream): Tensor {
  const { graph, c } = context
  const patches = normed(context, stream, w.norm).y
  const tokens = reshaped(patches, ['R', c.merge ** 2 * c.hidden])
  const format = graph.target.operand
  const activated = linear(tokens, w.in.w, { bias: w.in.bias, finish: 'gelu', format, rows: 'many' })
  return linear(activated, w.out.w, { bias: w.out.bias, rows: 'many' })
}

/** The stream with what is still to be added, and its norm. */
function normed({ graph, c }: Context, { x, parts, bias }: Stream, w: Tensor): { x: Tensor; y: Tensor } {
  const options = { eps: c.eps, format: graph.target.operand } as const
  if (parts && bias) return addLayerNorm(x, parts, bias, w, options)
  return { x, y: layerNorm(x, w, options) }
}
