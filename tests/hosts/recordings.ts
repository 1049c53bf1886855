import nano from '../../public/models/decider-nano/config.json' with { type: 'json' }
import type { Device } from '../../src/device/device.ts'
import { pipelines } from '../../src/device/webgpu/pipelines.ts'
import type { Graph, Step } from '../../src/graph/graph.ts'
import { specialise } from '../../src/graph/kernel.ts'
import { defaultLimits, type Target } from '../../src/graph/target.ts'
import { type Format, type Shape, tensor } from '../../src/graph/tensor.ts'
import { textConfig } from '../../src/models/qwen3_5/config.ts'
import { makePools } from '../../src/models/qwen3_5/pools.ts'
import { textGraph } from '../../src/models/qwen3_5/text.ts'
import { textWeights } from '../../src/models/qwen3_5/weights.ts'
import type { StoredFormat } from '../../src/weights/convert.ts'
import type { Weights } from '../../src/weights/load.ts'
import tiny from '../fixtures/qwen35-text-tiny/config.json' with { type: 'json' }

// Every shader of the text model without a device or a checkpoint. No vitest here: Deno runs this file too.

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

const models = { nano, tiny, '0.8B': published(1024, 3584), '2B': published(2048, 6144) }
const halves = ['f32', 'f16'] as const
const weightFormats = ['f32', 'f16', 'bf16'] as const

export interface Recorded {
  readonly name: string // '2B, hardware, operand f16, cache f16, weights bf16'
  readonly graph: Graph
}

/** The text model as recorded for every shape, target and format of the weights. */
export function recordAll(): Recorded[] {
  const recorded: Recorded[] = []
  for (const [model, config] of Object.entries(models))
    for (const driver of ['software', 'hardware', 'matrix units'] as const)
      for (const operand of halves)
        for (const cache of halves)
          for (const weights of weightFormats) {
            const name = `${model}, ${driver}, operand ${operand}, cache ${cache}, weights ${weights}`
            recorded.push({ name, graph: recordModel(config, target(driver, operand, cache), weights) })
          }
  return recorded
}

type Driver = 'software' | 'hardware' | 'matrix units'
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

function recordModel(json: unknown, target: Target, format: StoredFormat): Graph {
  const keep = (label: string, shape: Shape, format: Format) => tensor({ label, shape, format, place: 'kept' })
  const device: Partial<Device> = { target, keep }
  const config = textConfig(json)
  const pools = makePools(device as Device, config)
  const head = keep('head', [256, config.hidden], format)
  return textGraph(target, config, textWeights(unloaded(keep, format), config), pools.layers, head)
}

/** Answers every request for a tensor, whatever its name. */
function unloaded(keep: Device['keep'], format: StoredFormat): Weights {
  const asked: Partial<Weights> = {
    has: () => false,
    shapeOf: () => undefined,
    rows: (_, [rows = 0, width = 0]) => ({ rows, width, format, bytesPerRow: 0, read: async () => new Uint8Array() }),
    vector: (name, shape) => keep(name, shape, 'f32'),
    vectors: (label, names, width) => keep(label, [names.length, width], 'f32'),
    matrix: (name, shape) => keep(name, shape, format),
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
