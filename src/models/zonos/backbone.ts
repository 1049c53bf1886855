import { Graph } from '../../graph/graph.ts'
import { tableShapes } from '../../graph/segments.ts'
import type { Target } from '../../graph/target.ts'
import type { Tensor } from '../../graph/tensor.ts'
import { advanceCodes } from '../../kernels/advance_codes.ts'
import { attention } from '../../kernels/attention.ts'
import { attentionDecode } from '../../kernels/attention_decode.ts'
import { codeEmbedding } from '../../kernels/code_embedding.ts'
import { gatherRows } from '../../kernels/gather_rows.ts'
import { layerNorm } from '../../kernels/layer_norm.ts'
import { linear, operandOf } from '../../kernels/linear.ts'
import { rotaryAppend } from '../../kernels/rotary_append.ts'
import { frameShape, sampleCodes, samplingShape } from '../../kernels/sample_codes.ts'
import { EOS, MASK, type ZonosConfig } from './config.ts'
import type { LayerWeights, ZonosWeights } from './weights.ts'

/** What stays on the device between the runs of a row of codes. */
export interface Memory {
  readonly kv: readonly Tensor[] // ['*', 2 · kvHeads · D] of each layer
  readonly grid: Tensor // ['*', 9]: the delayed codes, column after column
  readonly ended: Tensor // [1]: the column in which codebook 0 said EOS
}

/** Columns that a run reports: as many runs may go by unread. */
export const REPORTED = 16

/** 'prefill': prefixes and the columns known so far. 'decode': one more column for each row. */
export type Phase = 'prefill' | 'decode'

/** Everything that the layers share. */
interface Context {
  readonly graph: Graph
  readonly c: ZonosConfig
  readonly run: ReturnType<typeof inputs>
  /** Decoding, a run has a token of each row, 'few'. */
  readonly rows: 'any' | 'few'
}

function inputs(graph: Graph, c: ZonosConfig) {
  return {
    columns: graph.input('columns', ['T'], 'u32'), // the column of the grid that a token embeds
    rope: graph.input('rope', ['T', c.headDim]),
    segments: graph.input('segments', tableShapes.segments, 'u32'),
    segmentOf: graph.input('segmentOf', tableShapes.segmentOf, 'u32'),
    chunks: graph.input('chunks', tableShapes.chunks, 'u32'),
  }
}

/**
 * One run of speech: logits of the last token of each row, from them the codes of the next column, written into the
 * grid. Outputs `report`: advanceCodes() says of what.
 */
export function speechGraph(target: Target, c: ZonosConfig, w: ZonosWeights, memory: Memory, phase: Phase): Graph {
  const graph = new Graph(target)
  const logits = zonosLogits(graph, c, w, memory, phase)
  const frame = graph.input('frame', frameShape, 'u32')
  const sampling = graph.input('sampling', samplingShape)
  const { drawn } = sampleCodes(logits, memory.grid, { frame, sampling })
  graph.output(
    'report',
    advanceCodes(drawn, frame, memory.grid, memory.ended, { eos: EOS, mask: MASK, reported: REPORTED }),
  )
  return graph
}

/** The transformer (zonos.md 2.1): logits ['R', 9 · 1025], or one row for each token when decoding. */
export function zonosLogits(graph: Graph, c: ZonosConfig, w: ZonosWeights, memory: Memory, phase: Phase): Tensor {
  const context: Context = { graph, c, run: inputs(graph, c), rows: phase === 'decode' ? 'few' : 'any' }
  let x = graph.name(phase === 'prefill' ? prefill(context, w, memory) : decode(context, w, memory), 'embed')
  w.layers.forEach((layer, i) => {
    x = graph.name(decoderLayer(context, layer, memory.kv[i]!, x), `layers.${i}`)
  })
  const last = phase === 'prefill' ? gatherRows(x, graph.input('read', ['R'], 'u32')) : x
  return graph.name(linear(last, w.heads, { norm: { w: w.norm, eps: c.eps }, rows: 'few' }), 'logits')
}

/** norm(W prefix + b), and the embeddings of the tokens that have a column instead. */
function prefill({ graph, c, run }: Context, w: ZonosWeights, memory: Memory): Tensor {
  const rows = graph.input('prefix', ['T', c.hidden])
  const projected = linear(rows, w.prefix.project, { bias: w.prefix.bias })
  const prefix = layerNorm(projected, w.prefix.norm, { eps: PREFIX_EPS })
  return codeEmbedding(memory.grid, run.columns, w.embeddings, prefix)
}
const PREFIX_EPS = 1e-5

const decode = ({ run }: Context, w: ZonosWeights, memory: Memory): Tensor =>
  codeEmbedding(memory.grid, run.columns, w.embeddings)

/** x += attention(norm(x)); x += fc2(y · silu(gate)) with y | gate = fc1 norm2(x). The residual stream is f32. */
function decoderLayer({ graph, c, run, rows }: Context, w: LayerWeights, kv: Tensor, x: Tensor): Tensor {
  const { heads, kvHeads, headDim, interleaved, eps } = c
  const shape = { heads, kvHeads, headDim, interleaved, format: operandOf(graph.target, w.out) }
  const qkv = linear(x, w.in, { norm: { w: w.norm, eps }, rows })
  const mixed =
    rows === 'few'
      ? attentionDecode(qkv, run.rope, kv, run, shape)
      : attention(rotaryAppend(qkv, run.rope, kv, run, shape), kv, run, shape)
  const between = linear(mixed, w.out, { add: x, rows })
  // The product of y and silu(gate) can pass f16's 65504.
  const gated = linear(between, w.fc1, { norm: { w: w.norm2, eps }, finish: 'swiglu_up_first', rows })
  return linear(gated, w.fc2, { add: between, rows })
}
