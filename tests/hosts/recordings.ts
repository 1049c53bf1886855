import dacNano from '../../public/models/dac-nano/config.json' with { type: 'json' }
import nano from '../../public/models/decider-nano/config.json' with { type: 'json' }
import zonosNano from '../../public/models/zonos-nano/config.json' with { type: 'json' }
import type { Device } from '../../src/device/device.ts'
import { pipelines } from '../../src/device/webgpu/pipelines.ts'
import type { Graph, Step } from '../../src/graph/graph.ts'
import { specialise } from '../../src/graph/kernel.ts'
import { defaultLimits, type Target } from '../../src/graph/target.ts'
import { type Format, type Shape, tensor } from '../../src/graph/tensor.ts'
import { dacConfig } from '../../src/models/dac/config.ts'
import { decoderGraph } from '../../src/models/dac/decoder.ts'
import { encoderGraph } from '../../src/models/dac/encoder.ts'
import { dacWeights } from '../../src/models/dac/weights.ts'
import { textConfig, type VisionConfig, visionConfig } from '../../src/models/qwen3_5/config.ts'
import { makePools } from '../../src/models/qwen3_5/pools.ts'
import { publishedVision } from '../../src/models/qwen3_5/published.ts'
import { textGraph } from '../../src/models/qwen3_5/text.ts'
import { visionGraph } from '../../src/models/qwen3_5/vision.ts'
import { visionWeights } from '../../src/models/qwen3_5/vision_weights.ts'
import { textWeights } from '../../src/models/qwen3_5/weights.ts'
import { type Phase, speechGraph } from '../../src/models/zonos/backbone.ts'
import { zonosConfig } from '../../src/models/zonos/config.ts'
import { makeMemory } from '../../src/models/zonos/memory.ts'
import { zonosWeights } from '../../src/models/zonos/weights.ts'
import type { StoredFormat } from '../../src/weights/convert.ts'
import type { Weights } from '../../src/weights/load.ts'
import dacTiny from '../fixtures/dac-tiny/config.json' with { type: 'json' }
import tiny from '../fixtures/qwen35-text-tiny/config.json' with { type: 'json' }

// Every shader of the models without a device or a checkpoint. No vitest here: Deno runs this file too.

/** The published models differ in two widths only. */
const published = (hidden_size: number, intermediate_size: number) => ({
  ...tiny,
  hidden_size,
  intermediate_size,
  num_hidden_layers: 24,
  layer_types: undefined, // every fourth layer is full attention
  num_attention_heads: 8,
  num_key_value_heads: 2,
  head_dim: 256,
  linear_num_key_heads: 16,
  linear_num_value_heads: 16,
  linear_key_head_dim: 128,
  linear_value_head_dim: 128,
  rope_parameters: { ...tiny.rope_parameters, mrope_section: [11, 11, 10] },
  vocab_size: 248320,
  max_position_embeddings: 262144,
})

const zonos = (
  hidden: number,
  intermediate: number,
  heads: number,
  kvHeads: number,
  headDim: number,
  layers: number,
) => ({
  ...zonosNano,
  backbone: {
    ...zonosNano.backbone,
    d_model: hidden,
    attn_mlp_d_intermediate: intermediate,
    n_layer: layers,
    attn_layer_idx: Array.from({ length: layers }, (_, i) => i),
    attn_cfg: {
      ...zonosNano.backbone.attn_cfg,
      num_heads: heads,
      num_heads_kv: kvHeads,
      head_dim: headDim,
      rotary_emb_dim: headDim,
    },
  },
})
const speakers = { 'zonos-nano': zonosNano, zonos: zonos(2048, 8192, 16, 4, 128, 26) }

const models = { nano, tiny, '0.8B': published(1024, 3584), '2B': published(2048, 6144) }
const drivers = ['software', 'hardware', 'matrix units'] as const
const halves = ['f32', 'f16'] as const
const weightFormats = ['f32', 'f16', 'bf16'] as const

export interface Recorded {
  readonly name: string // '2B, hardware, operand f16, cache f16, weights bf16'
  readonly graph: Graph
}

/** The models as recorded for every shape, target and format of the weights. */
export const recordAll = (): Recorded[] => [...recordModels(), ...recordTowers(), ...recordCodecs()]

function recordModels(): Recorded[] {
  const recorded: Recorded[] = []
  for (const [model, config] of Object.entries(models))
    for (const driver of drivers)
      for (const operand of halves)
        for (const cache of halves)
          for (const weights of weightFormats) {
            const name = `${model}, ${driver}, operand ${operand}, cache ${cache}, weights ${weights}`
            recorded.push({ name, graph: recordModel(config, target(driver, operand, cache), weights) })
          }
  for (const [model, config] of Object.entries(speakers))
    for (const driver of drivers)
      for (const half of halves)
        for (const weights of weightFormats)
          for (const layers of [undefined, 'q8'] as const)
            for (const phase of ['prefill', 'decode'] as const) {
              const formats = `operand and cache ${half}, weights ${weights}, layers ${layers ?? weights}`
              const graph = recordSpeech(config, target(driver, half, half), weights, layers, phase)
              recorded.push({ name: `${model}, ${phase}, ${driver}, ${formats}`, graph })
            }
  return recorded
}

/** The larger published vision tower and a trained one, each on what its device would choose. */
const towers: Readonly<Record<string, VisionConfig>> = {
  'nano tower': visionConfig(nano)!,
  '2B tower': publishedVision('2B'),
}

const recordTowers = (): Recorded[] =>
  Object.entries(towers).flatMap(([model, config]) =>
    (
      [
        ['software', 'f32', 'bf16'],
        ['hardware', 'f16', 'f16'],
        ['matrix units', 'f16', 'f16'],
      ] as const
    ).map(([driver, operand, format]) => {
      const graph = recordTower(config, target(driver, operand, operand), format)
      return { name: `${model}, ${driver}, operand and cache ${operand}, weights ${format}`, graph }
    }),
  )

/** The published codec, a trained one and a tiny one, each on what its device would choose. */
const codecs = {
  'dac 44 kHz': { ...dacNano, encoder_hidden_size: 64, decoder_hidden_size: 1536, hidden_size: 1024 },
  'dac-nano': dacNano,
  'dac-tiny': dacTiny,
}

function recordCodecs(): Recorded[] {
  return Object.entries(codecs).flatMap(([model, json]) => {
    const config = dacConfig(json)
    return (
      [
        ['software', 'f32', 'f32'],
        ['hardware', 'f32', 'bf16'],
        ['hardware', 'f16', 'f16'],
        ['matrix units', 'f16', 'f16'],
      ] as const
    ).flatMap(([driver, operand, format]) => {
      const to = target(driver, operand, operand)
      const w = dacWeights(unloaded(keep, format), config)
      const name = `${model}, ${driver}, operand ${operand}, weights ${format}`
      return [
        { name: `${name}, decoder`, graph: decoderGraph(to, w) },
        { name: `${name}, encoder`, graph: encoderGraph(to, config, w) },
      ]
    })
  })
}

type Driver = (typeof drivers)[number]
const target = (driver: Driver, operand: Target['operand'], cache: Target['cache']): Target => ({
  kind: 'webgpu',
  software: driver === 'software',
  features: new Set(['shader-f16', 'subgroups', ...(driver === 'matrix units' ? [MATRIX] : [])]),
  limits: defaultLimits,
  operand,
  cache,
  disabled: new Map(),
  ...(driver === 'matrix units' && { matrix: { M: 16, N: 16, K: 16 }, subgroupSize: 32 }),
})
const MATRIX = 'chromium-experimental-subgroup-matrix'

const keep = (label: string, shape: Shape, format: Format) => tensor({ label, shape, format, place: 'kept' })

function recordModel(json: unknown, target: Target, format: StoredFormat): Graph {
  const device: Partial<Device> = { target, keep }
  const config = textConfig(json)
  const pools = makePools(device as Device, config)
  const head = keep('head', [256, config.hidden], format)
  const images = visionConfig(json) && keep('images', ['*', config.hidden], 'f32')
  return textGraph(target, config, textWeights(unloaded(keep, format), config), pools.layers, head, images)
}

function recordTower(config: VisionConfig, target: Target, format: StoredFormat): Graph {
  const patch = keep('patch', [config.hidden, 3 * config.patch ** 2], target.operand)
  const kv = keep('kv', ['*', 2 * config.hidden], target.cache)
  const features = keep('features', ['*', config.out], 'f32')
  return visionGraph(target, config, visionWeights(unloaded(keep, format), config), { patch, kv, features })
}

/** A frame of the published speaker on a GPU of the usual 32 KiB of workgroup memory: a norm is part of its product. */
export const recordFrame = (): Graph => {
  const usual = { ...target('hardware', 'f16', 'f16'), limits: { ...defaultLimits, workgroupBytes: 32768 } }
  return recordSpeech(speakers.zonos, usual, 'f16', undefined, 'decode')
}

function recordSpeech(json: unknown, target: Target, format: StoredFormat, layers: 'q8' | undefined, phase: Phase) {
  const keep = (label: string, shape: Shape, format: Format) => tensor({ label, shape, format, place: 'kept' })
  const device: Partial<Device> = { target, keep }
  const config = zonosConfig(json)
  const weights = zonosWeights(unloaded(keep, format), config, { layers })
  return speechGraph(target, config, weights, makeMemory(device as Device, config), phase)
}

/** Answers every request for a tensor, whatever its name. */
function unloaded(keep: Device['keep'], format: StoredFormat): Weights {
  const asked: Partial<Weights> = {
    has: () => false,
    shapeOf: () => undefined,
    rows: (_, [rows = 0, width = 0]) => ({
      rows,
      width,
      format,
      bytesPerRow: 0,
      read: async () => ({ byteLength: 0, fill() {} }),
    }),
    values: (_, shape) => ({ shape, data: new Float32Array() }),
    vector: (name, shape) => keep(name, shape, 'f32'),
    vectors: (label, names, width) => keep(label, [names.length, width], 'f32'),
    matrix: (name, shape, as) => keep(name, shape, as ?? format),
    arranged: (name, _, shape, __, as = format) => keep(name, shape, as),
    stack: (label, parts, width) => keep(label, [parts.reduce((n, { rows }) => n + rows, 0), width], format),
  }
  return asked as Weights
}

export const sourceOf = ({ kernel, bindings, constants }: Step): string => specialise(kernel, bindings, constants)

/** One step for every distinct source. */
export function distinctSteps(recorded: readonly Recorded[]): Step[] {
  const steps = recorded.flatMap(({ graph }) => graph.steps)
  return [...new Map(steps.map((step) => [sourceOf(step), step])).values()]
}

export interface Compiled {
  readonly kernels: readonly string[] // one for every source that compiled
  readonly failures: readonly string[] // kernel name and the first line of what the compiler says
}

/** Compiles the steps as the device does. Two that cannot compile are among them, and have to fail. */
export async function compileAll(gpu: GPUDevice, steps: readonly Step[]): Promise<Compiled> {
  const shaders = pipelines(gpu)
  const kernels: string[] = []
  const failures: string[] = []
  for (const step of [...steps, ...brokenSteps(steps[0]!)]) {
    try {
      await shaders.of(step)
      kernels.push(step.kernel.name)
    } catch (error) {
      failures.push((error as Error).message.split('\n', 2).join(' '))
    }
  }
  return { kernels, failures }
}

/** A step that does not parse, and one that asks for more invocations than the default limits grant. */
function brokenSteps(step: Step): Step[] {
  const broken = (name: string, ...shader: string[]): Step => ({
    kernel: { ...step.kernel, name, reads: [], writes: [], packed: [], shader },
    bindings: {},
    constants: {},
    workgroups: step.workgroups,
  })
  return [broken('unparsable', 'fn main('), broken('too_wide', '@compute @workgroup_size(512) fn main() {}')]
}
