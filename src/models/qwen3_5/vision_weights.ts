import type { Tensor } from '../../graph/tensor.ts'
import type { HostValues, Weights } from '../../weights/load.ts'
import type { VisionConfig } from './config.ts'

/** Matrices are [out, in]. C hidden, I intermediate. */
export interface VisionWeights {
  /** [C, 3, frames, patch, patch], on the host: the frames of a still are one. */
  readonly patch: HostValues
  readonly patchBias: Tensor // [C]
  readonly positions: Tensor // [side², C]
  readonly blocks: readonly VisionBlock[]
  readonly merger: {
    readonly norm: Tensor // [2, C]
    readonly in: Affine // [merge² C, merge² C]
    readonly out: Affine // [out, merge² C]
  }
}

export interface VisionBlock {
  readonly norm1: Tensor // [2, C]: weight, bias
  readonly qkv: Affine // [3C, C]: queries of all heads, keys, values
  readonly proj: Affine // [C, C]
  readonly norm2: Tensor // [2, C]
  readonly up: Affine // [I, C]
  readonly down: Affine // [C, I]
}

/** x Wᵀ + b. */
export interface Affine {
  readonly w: Tensor
  readonly bias: Tensor
}

/** Asks for every tensor of the vision tower by its canonical name; shapes are checked against the config. */
export function visionWeights(w: Weights, c: VisionConfig): VisionWeights {
  const norm = (at: string): Tensor => w.vectors(at, [`${at}.weight`, `${at}.bias`], c.hidden)
  const affine = (at: string, rows: number, columns: number): Affine => ({
    w: w.matrix(`${at}.weight`, [rows, columns]),
    bias: w.vector(`${at}.bias`, [rows]),
  })
  const merged = c.merge ** 2 * c.hidden
  return {
    patch: w.values('visual.patch_embed.proj.weight', [c.hidden, 3, c.frames, c.patch, c.patch]),
    patchBias: w.vector('visual.patch_embed.proj.bias', [c.hidden]),
    positions: w.vector('visual.pos_embed.weight', [c.side ** 2, c.hidden]),
    blocks: Array.from({ length: c.depth }, (_, i) => {
      const at = `visual.blocks.${i}`
      return {
        norm1: norm(`${at}.norm1`),
        qkv: affine(`${at}.attn.qkv`, 3 * c.hidden, c.hidden),
        proj: affine(`${at}.attn.proj`, c.hidden, c.hidden),
        norm2: norm(`${at}.norm2`),
        up: affine(`${at}.mlp.linear_fc1`, c.intermediate, c.hidden),
        down: affine(`${at}.mlp.linear_fc2`, c.hidden, c.intermediate),
      }
    }),
    merger: {
      norm: norm('visual.merger.norm'),
      in: affine('visual.merger.linear_fc1', merged, merged),
      out: affine('visual.merger.linear_fc2', c.out, merged),
    },
  }
}

/** The patch embedding for stills, whose frames are equal: [C, 3 · patch · patch], summed over the frames. */
export function stillPatch({ data }: HostValues, { hidden, frames, patch }: VisionConfig): Float32Array {
  const area = patch ** 2
  return Float32Array.from({ length: hidden * 3 * area }, (_, i) => {
    const first = Math.floor(i / area) * frames * area + (i % area)
    let sum = 0
    for (let frame = 0; frame < frames; frame++) sum += data[first + frame * area]!
    return sum
  })
}
