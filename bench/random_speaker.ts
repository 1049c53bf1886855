import nano from '../public/models/zonos-nano/config.json' with { type: 'json' }
import dacNano from '../public/models/dac-nano/config.json' with { type: 'json' }
import type { Device } from '../src/device/device.ts'
import { GROUP, quantize } from '../src/device/quants.ts'
import type { Format, Shape, Tensor } from '../src/graph/tensor.ts'
import { hash, type Range } from '../src/kernels/fill_random.ts'
import { type DacConfig, dacConfig } from '../src/models/dac/config.ts'
import { type DacWeights, dacWeights } from '../src/models/dac/weights.ts'
import { type ZonosConfig, zonosConfig } from '../src/models/zonos/config.ts'
import { type ZonosWeights, zonosWeights } from '../src/models/zonos/weights.ts'
import type { Weights } from '../src/weights/load.ts'
import { around, fill } from './random_model.ts'

export interface RandomSpeaker {
  readonly c: ZonosConfig
  readonly w: ZonosWeights
  release(): void
}

/** config.json of Zonos v0.1-transformer; `tiny` is zonos-nano's, for smoke tests. */
export function speakerShape(tiny: boolean): ZonosConfig {
  if (tiny) return zonosConfig(nano)
  const heads = { num_heads: 16, num_heads_kv: 4, head_dim: 128, rotary_emb_dim: 128 }
  const sizes = { d_model: 2048, attn_mlp_d_intermediate: 8192, n_layer: 26, attn_layer_idx: [...Array(26).keys()] }
  return zonosConfig({
    ...nano,
    backbone: { ...nano.backbone, ...sizes, attn_cfg: { ...nano.backbone.attn_cfg, ...heads } },
  })
}

/** config.json of descript/dac_44khz; `tiny` is dac-nano's. */
export function codecShape(tiny: boolean): DacConfig {
  if (tiny) return dacConfig(dacNano)
  return dacConfig({ ...dacNano, encoder_hidden_size: 64, decoder_hidden_size: 1536, hidden_size: 1024 })
}

export interface RandomCodec {
  readonly c: DacConfig
  readonly w: DacWeights
  release(): void
}

/** Weights of a config's shapes without a checkpoint: the same for the same seed, activations as large as inputs. */
export async function randomSpeaker(device: Device, c: ZonosConfig, layers?: 'q8', seed = 1): Promise<RandomSpeaker> {
  const random = randomWeights(device, seed)
  const w = zonosWeights(random.weights, c, { layers })
  await random.fill()
  return { c, w, release: random.release }
}

export async function randomCodec(device: Device, c: DacConfig, seed = 1): Promise<RandomCodec> {
  const random = randomWeights(device, seed)
  const w = dacWeights(random.weights, c)
  await random.fill()
  return { c, w, release: random.release }
}

/** What a model asks of a checkpoint, as kept tensors that `fill` gives values of usual sizes. */
function randomWeights(device: Device, seed: number) {
  const fills: { t: Tensor; range: Range }[] = []
  const keep = (label: string, shape: Shape, format: Format, range: Range): Tensor => {
    const t = device.keep(label, shape, format)
    fills.push({ t, range })
    return t
  }
  const matrixFormat = device.target.operand === 'f16' ? 'f16' : 'bf16'
  const matrix = (label: string, rows: number, width: number, format: Format = matrixFormat): Tensor =>
    keep(label, [rows, width], format, around(0, Math.sqrt(3 / width)))
  const weights: Partial<Weights> = {
    values: (_, shape) => ({ shape, data: hostNoise(shape) }),
    vector: (name, shape) => keep(name, shape, 'f32', name.endsWith('alpha') ? around(1, 0.5) : around(0, 0.1)),
    vectors: (label, names, width) => keep(label, [names.length, width], 'f32', around(0.5, 0.5)),
    matrix: (name, [rows = 0, width = 0], format) => matrix(name, rows, width, format),
    arranged: (name, _stored, [rows = 0, width = 0], _order, format) => matrix(name, rows, width, format),
    stack: (label, parts, width) =>
      matrix(
        label,
        parts.reduce((n, { rows }) => n + rows, 0),
        width,
      ),
  }
  return {
    weights: weights as Weights,
    async fill() {
      const noise = quantNoise(seed)
      for (const [i, { t, range }] of fills.entries()) {
        if (t.format === 'q8') await fillQuants(device, t, range, noise)
        else await fill(device, t, range, seed + i)
      }
      await device.flush()
    },
    release: () => fills.forEach(({ t }) => void device.release(t)),
  }
}

const hostNoise = (shape: readonly number[]): Float32Array =>
  new Float32Array(shape.reduce((n, d) => n * d, 1)).map((_, i) => 0.1 * (hash(i) / 2 ** 31 - 1))

const PIECE = 2 ** 20

/** Random numbers in [-1, 1), which the host makes once: 2^20 of them take it a while. */
function quantNoise(seed: number): () => Float32Array {
  let noise: Float32Array | undefined
  return () => {
    noise ??= new Float32Array(PIECE).map((_, i) => hash(seed + i) / 2 ** 31 - 1)
    return noise
  }
}

/** A piece of random weights, quantised, over and over. */
async function fillQuants(device: Device, t: Tensor, { high }: Range, noise: () => Float32Array): Promise<void> {
  const [rows, width] = t.shape as [number, number]
  const all = rows * width
  const { quants, scales } = quantize(noise().map((value) => high * value))
  for (let at = 0; at < all; at += PIECE) {
    const n = Math.min(PIECE, all - at)
    device.write(t, new Uint8Array(quants.buffer, 0, n), at)
    device.write(t, new Uint8Array(scales.buffer, 0, (2 * n) / GROUP), all + (2 * at) / GROUP)
  }
  await device.flush()
}
