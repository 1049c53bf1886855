import type { MakePool, Probe } from '../../device/prove.ts'
import { Graph } from '../../graph/graph.ts'
import { type Segment, type SegmentTables, segmentTables, tableShapes } from '../../graph/segments.ts'
import { type Tensor, tensor } from '../../graph/tensor.ts'
import { advanceCodes } from '../advance_codes.ts'
import { attention } from '../attention.ts'
import { attentionDecode } from '../attention_decode.ts'
import { convPrepare } from '../conv_prepare.ts'
import { deltaForm, deltaFormat, deltaRule } from '../delta_rule.ts'
import { gatedRmsNorm } from '../gated_rms_norm.ts'
import { addLayerNorm, layerNorm } from '../layer_norm.ts'
import { qkNormRope } from '../qk_norm_rope.ts'
import { addRmsNorm, gatherAddRmsNorm, rmsNorm } from '../rms_norm.ts'
import { rotaryAppend } from '../rotary_append.ts'
import { frameInput, frameShape, sampleCodes, samplingInput, samplingShape } from '../sample_codes.ts'

const row = (length: number, to: number, kvStart: number): Segment => {
  return { length, from: 0, to, prefixStart: 0, prefixLength: 0, kvStart, kvBefore: 0 }
}
/** Two rows, one longer than a chunk, that continue nothing and leave their states. */
const few = segmentTables([row(69, 1, 0), row(6, 2, 69)], 3)
/** Enough rows for the tiles that large runs take. */
const many = segmentTables([row(69, 0, 0), ...Array.from({ length: 30 }, (_, i) => row(1, 0, 69 + i))], 3)
/** Rows of a token each, behind 140 cache rows, behind one and behind none. */
const decoded = segmentTables(
  [140, 1, 0].map((kvBefore, i) => ({ ...row(1, 0, 150 * i), kvBefore })),
  3,
)
const read = Uint32Array.of(0, 68, 74)

const tablesOf = (graph: Graph) => ({
  segments: graph.input('segments', tableShapes.segments, 'u32'),
  segmentOf: graph.input('segmentOf', tableShapes.segmentOf, 'u32'),
  chunks: graph.input('chunks', tableShapes.chunks, 'u32'),
})

const delta = { keyHeads: 1, valueHeads: 2, keyWidth: 128, valueWidth: 128 }
const channels = 2 * 128 + 2 * 128

/** Everything between the products of a gated delta layer, on matrix units or without. */
function deltaLayer(graph: Graph, pool: MakePool, units: boolean): Record<string, Tensor> {
  const run = tablesOf(graph)
  const x = graph.input('projected', ['T', channels + 2 * 128 + 4])
  const conv = pool(['*', 3, channels], 'f32', 3)
  const state = pool(['*', 2, 128, 128], 'f32', 3)
  const weights = [graph.input('conv', [channels, 1, 4]), graph.input('gates', [2, 2])] as const
  const form = deltaForm(graph.target, delta, units)
  const { qkv, gates } = convPrepare(x, ...weights, conv, run, { ...delta, kernel: 4, format: deltaFormat(form) })
  const o = deltaRule(qkv, gates, state, run, delta, { form })
  return { y: gatedRmsNorm(o, { of: x, column: channels }, graph.input('w', [128]), { eps: 1e-6 }) }
}

/**
 * Everything between the products of an attention layer: gated, of few heads and of more, so that every tile runs, and
 * of a vision tower, in which all patches of an image see each other.
 */
function attentionLayer(graph: Graph, pool: MakePool): Record<string, Tensor> {
  const run = tablesOf(graph)
  const [norms, rope] = [graph.input('norms', [2, 256]), graph.input('rope', ['T', 64])]
  const layer = (count: number, kvHeads: number): Tensor => {
    const heads = { heads: count, kvHeads, headDim: 256 }
    const x = graph.input(`projected ${count}`, ['T', 2 * (count + kvHeads) * 256])
    const kv = pool(['*', 2 * kvHeads * 256], graph.target.cache, many.counts.T)
    const q = qkNormRope(x, norms, rope, kv, run, { ...heads, rotary: 64, eps: 1e-6 })
    return attention(q, kv, run, { ...heads, gate: x })
  }
  const vision = { heads: 4, kvHeads: 4, headDim: 64, interleaved: false, causal: false }
  const patches = pool(['*', 2 * 4 * 64], graph.target.cache, many.counts.T)
  const turned = rotaryAppend(graph.input('patches', ['T', 3 * 4 * 64]), rope, patches, run, vision)
  const seen = attention(turned, patches, run, vision)
  return { low: layer(2, 1), middle: layer(4, 1), high: layer(8, 2), seen }
}

/** Everything between the products of an attention layer that decodes. */
function decodeLayer(graph: Graph, pool: MakePool): Record<string, Tensor> {
  const run = tablesOf(graph)
  const x = graph.input('projected', ['T', (4 + 2) * 64])
  const kv = pool(['*', 2 * 64], graph.target.cache, 450)
  const shape = { heads: 4, kvHeads: 1, headDim: 64, interleaved: true }
  const first = attentionDecode(x, graph.input('rope', ['T', 64]), kv, run, shape)
  return { first }
}

function norms(graph: Graph): Record<string, Tensor> {
  const options = { eps: 1e-6, offset: 1 } as const
  const [x, parts] = [graph.input('x', ['T', 256]), graph.input('parts', ['T', 512])]
  const w = graph.input('w', [256])
  const sum = addRmsNorm(x, parts, w, options)
  const read = gatherAddRmsNorm(x, parts, w, graph.input('read', ['R'], 'u32'), options)
  return { plain: rmsNorm(x, w, options), ...sum, readX: read.x, readY: read.y }
}

const layerNorms = (graph: Graph): Record<string, Tensor> => {
  const [x, w] = [graph.input('x', ['T', 256]), graph.input('w', [2, 256])]
  const [parts, bias] = [graph.input('parts', ['T', 512]), graph.input('bias', [256])]
  return { norm: layerNorm(x, w, { eps: 1e-5 }), ...addLayerNorm(x, parts, bias, w, { eps: 1e-6 }) }
}

const frame = frameInput({
  ...{ column: 2, endFrom: 3, othersEnd: false, ends: true, seed: 1, before: 0, wanted: 4, shifted: false },
})
const sampling = samplingInput({
  ...{ guidance: 2, temperature: 0.5, linear: 0.5, confidence: 0.4, quadratic: 0 },
  ...{ topP: 0.9, topK: 500, minP: 0.02, penalty: 3, window: 2 },
})

/** Nine codes drawn and written, from the first two of three rows of logits. */
function speech(graph: Graph, pool: MakePool): Record<string, Tensor> {
  const run = { frame: graph.input('frame', frameShape, 'u32'), sampling: graph.input('sampling', samplingShape) }
  const grid = pool(['*', 9], 'u32', 4)
  const { drawn, scores } = sampleCodes(graph.input('logits', ['R', 9 * 1025]), grid, run)
  const ended = pool([1], 'u32', 1)
  return { scores, report: advanceCodes(drawn, run.frame, grid, ended, { eos: 1024, mask: 1025, reported: 2 }) }
}

interface Layer {
  readonly variants: readonly string[]
  readonly tables: SegmentTables
  readonly tolerance: number
  layer(graph: Graph, pool: MakePool): Record<string, Tensor>
}

/** The optional kernels of each of these, tried together: a layer that is wrong gives up all of its own. */
const layers: readonly Layer[] = [
  {
    variants: ['delta_chunk_matrix', 'delta_scan_matrix'],
    layer: (graph, pool) => deltaLayer(graph, pool, true),
    tables: few,
    tolerance: 1e-2, // operands are f16
  },
  {
    variants: ['conv_prepare', 'delta_chunk', 'delta_scan', 'gated_rms_norm_shared'],
    layer: (graph, pool) => deltaLayer(graph, pool, false),
    tables: few,
    tolerance: 1e-3,
  },
  {
    variants: ['qk_norm_rope_shared', 'attention_matrix', 'attention_tiled'],
    layer: attentionLayer,
    tables: many,
    tolerance: 5e-3,
  },
  {
    variants: ['rms_norm_shared', 'add_rms_norm_shared', 'gather_add_rms_norm_shared'],
    layer: norms,
    tables: few,
    tolerance: 1e-4,
  },
  { variants: ['attention_decode', 'attention_join'], layer: decodeLayer, tables: decoded, tolerance: 5e-3 },
  { variants: ['layer_norm_shared', 'add_layer_norm_shared'], layer: layerNorms, tables: few, tolerance: 1e-4 },
  { variants: ['sample_codes_shared'], layer: speech, tables: few, tolerance: 1e-4 },
]

export const layerProbes: readonly Probe[] = layers.flatMap(({ variants, layer, tables, tolerance }) =>
  variants.map((variant) => ({
    variant,
    counts: tables.counts,
    tolerance,
    fits(target) {
      const graph = new Graph(target)
      layer(graph, (shape, format) => tensor({ label: 'pool', shape, format, place: 'kept' }))
      return !target.software && graph.steps.some(({ kernel }) => kernel.name === variant)
    },
    record(graph: Graph, pool: MakePool) {
      for (const [name, t] of Object.entries(layer(graph, pool))) graph.output(name, t)
      const { segments, segmentOf, chunks } = tables
      const given = { segments, segmentOf, chunks, read, frame, sampling }
      return Object.fromEntries(Object.entries(given).filter(([name]) => graph.inputs.has(name)))
    },
  })),
)
