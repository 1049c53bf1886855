import type { Device } from '../src/device/device.ts'
import { encode } from '../src/device/formats.ts'
import { Graph } from '../src/graph/graph.ts'
import type { Format, Shape, Tensor } from '../src/graph/tensor.ts'
import { fillRandom, hash, type Range } from '../src/kernels/fill_random.ts'
import type { TextConfig, VisionConfig } from '../src/models/qwen3_5/config.ts'
import { type VisionWeights, visionWeights } from '../src/models/qwen3_5/vision_weights.ts'
import { type TextWeights, textWeights } from '../src/models/qwen3_5/weights.ts'
import type { HostValues, RowTable, Weights } from '../src/weights/load.ts'
import { gathered } from '../src/weights/rows.ts'

export interface RandomModel {
  readonly c: TextConfig
  readonly w: TextWeights
  readonly head: Tensor // [LABELS, H]
  release(): void
}

/** Rows of the LM head that Decider reads. */
const LABELS = 255
/** Published checkpoints are bf16; a device with f16 keeps their matrices as f16, as loading does. */
const STORED = 'bf16'
/** Distinct rows of the embedding; ids beyond them repeat. */
const EMBEDDING_ROWS = 4096

/**
 * Weights of a config's shapes without a checkpoint: a kernel fills them where they lie, the same for the same seed.
 * Outputs of matrices keep the variance of their inputs, so that activations stay finite; decays and gates are those
 * of trained models in size.
 */
export async function randomModel(device: Device, c: TextConfig, seed = 1): Promise<RandomModel> {
  const random = randomWeights(device, seed)
  const w = textWeights(random.weights, c)
  const head = random.keep('head', [LABELS, c.hidden], STORED, around(0, 0.05))
  await random.fill()
  return { c, w, head, release: random.release }
}

/** Weights of a vision tower's shapes in the same way. */
export async function randomTower(
  device: Device,
  c: VisionConfig,
  seed = 2,
): Promise<{ readonly w: VisionWeights; release(): void }> {
  const random = randomWeights(device, seed)
  const w = visionWeights(random.weights, c)
  await random.fill()
  return { w, release: random.release }
}

/** Answers every request for a tensor with one that `fill` makes random. */
function randomWeights(device: Device, seed: number) {
  const fills: { t: Tensor; range: Range }[] = []
  const keep = (label: string, shape: Shape, format: Format, range: Range): Tensor => {
    const t = device.keep(label, shape, format)
    fills.push({ t, range })
    return t
  }
  const matrixFormat = device.target.operand === 'f16' ? 'f16' : STORED
  const matrix = (label: string, rows: number, width: number): Tensor =>
    keep(label, [rows, width], matrixFormat, around(0, Math.sqrt(3 / width)))

  const weights: Partial<Weights> = {
    has: () => false,
    shapeOf: () => undefined,
    ignore() {},
    rows: (_, [rows = 0, width = 0]) => randomRows(rows, width, seed),
    values: (_, shape) => randomValues(shape, seed),
    vector: (name, shape) => keep(name, shape, 'f32', rangeOf(name, shape.at(-1)!)),
    vectors: (label, names, width) => keep(label, [names.length, width], 'f32', rangeOf(names[0]!, width)),
    matrix: (name, [rows = 0, width = 0]) => matrix(name, rows, width),
    stack: (label, parts, width) =>
      matrix(
        label,
        parts.reduce((n, { rows }) => n + rows, 0),
        width,
      ),
  }
  return {
    weights: weights as Weights,
    keep,
    async fill() {
      for (const [i, { t, range }] of fills.entries()) await fill(device, t, range, seed + i)
      await device.flush()
    },
    release: () => fills.forEach(({ t }) => void device.release(t)),
  }
}

/** Fills a kept tensor on its device. */
export async function fill(device: Device, t: Tensor, range: Range, seed: number): Promise<void> {
  const graph = new Graph(device.target)
  fillRandom(t, graph.input('seed', [1], 'u32'), range)
  const program = await device.compile(graph)
  await program.run({ seed: Uint32Array.of(seed) }, { T: 1, S: 1, C: 1, R: 1 })
  program.dispose()
}

export const around = (middle: number, spread: number): Range => ({ low: middle - spread, high: middle + spread })

/** By what the small weights mean; most are norms around zero. */
function rangeOf(name: string, width: number): Range {
  if (/\.(A_log|dt_bias)$/.test(name)) return { low: -3, high: 0 } // may share a tensor; decays of 0.5 to 1
  if (name.endsWith('.conv1d.weight')) return around(0, 1 / Math.sqrt(width))
  if (name.endsWith('.linear_attn.norm.weight') || /^visual\..*norm/.test(name)) return around(1, 0.1)
  return around(0, 0.1)
}

/** A matrix that the host computes with, of shape [rows, ...]. */
function randomValues(shape: readonly number[], seed: number): HostValues {
  const [rows = 1, ...rest] = shape
  const width = rest.reduce((a, b) => a * b, 1)
  const spread = 2 * Math.sqrt(3 / width)
  return {
    shape,
    data: Float32Array.from({ length: rows * width }, (_, i) => (hash(seed + i) / 2 ** 32 - 0.5) * spread),
  }
}

/** An embedding in memory. */
function randomRows(rows: number, width: number, seed: number): RowTable {
  const distinct = Math.min(rows, EMBEDDING_ROWS)
  const values = Float32Array.from({ length: distinct * width }, (_, i) => (hash(seed + i) / 2 ** 32 - 0.5) / 10)
  const all = encode(values, STORED)
  const bytesPerRow = 2 * width
  return {
    rows,
    width,
    format: STORED,
    bytesPerRow,
    async read(ids) {
      return gathered(ids, bytesPerRow, (id) => {
        const at = (id % distinct) * bytesPerRow
        return all.subarray(at, at + bytesPerRow)
      })
    },
  }
}
