import type { Tensor } from '../../graph/tensor.ts'
import type { HostValues, Weights } from '../../weights/load.ts'
import { CODEBOOKS, CODES, type ConditionerConfig, MASK, PHONEMES, type ZonosConfig } from './config.ts'

/** Matrices are [out, in]. d hidden, I intermediate, D head width. Norms are weight and bias, [2, d]. */
export interface ZonosWeights {
  /** On the host, in the config's order: a prefix has few tokens, each of them little work. */
  readonly conditioners: readonly ConditionerWeights[]
  readonly prefix: { readonly project: Tensor; readonly bias: Tensor; readonly norm: Tensor } // [d, d], [d]
  readonly embeddings: Tensor // [9 · 1026, d], codebook after codebook
  readonly layers: readonly LayerWeights[]
  readonly norm: Tensor
  readonly heads: Tensor // [9 · 1025, d], codebook after codebook
}

export interface LayerWeights {
  readonly norm: Tensor
  readonly in: Tensor // [(heads + 2 kvHeads) · D, d]: queries, keys, values
  readonly out: Tensor // [d, heads · D]
  readonly norm2: Tensor
  readonly fc1: Tensor // [2I, d]: values, gates
  readonly fc2: Tensor // [d, I]
}

/** Values in f32, there when the weights have been streamed. */
export interface ConditionerWeights {
  readonly config: ConditionerConfig
  /** phonemes [189, d]; passthrough [d, width]; fourier [d/2, width]; integer [max - min + 1, d]. */
  readonly weight: HostValues
  readonly bias?: HostValues // [d], of a passthrough
  readonly unconditional?: HostValues // [d], where config.unconditional
}

export interface ZonosWeightsOptions {
  /** 'q8': the products of the layers take a byte per weight. Embeddings, heads and the prefix stay as they are. */
  readonly layers?: 'q8' | undefined
}

/** Asks for every tensor of the checkpoint by its name; shapes are checked against the config. */
export function zonosWeights(w: Weights, c: ZonosConfig, { layers }: ZonosWeightsOptions = {}): ZonosWeights {
  const { hidden: d, intermediate: I, headDim: D } = c
  const norm = (at: string): Tensor => w.vectors(at, [`${at}.weight`, `${at}.bias`], d)
  const perCodebook = (name: string, rows: number): Tensor => {
    const parts = Array.from({ length: CODEBOOKS }, (_, k) => ({ name: `${name}.${k}.weight`, rows }))
    return w.stack(name, parts, d)
  }
  return {
    conditioners: c.conditioners.map((config, i) => conditioner(w, config, d, `prefix_conditioner.conditioners.${i}`)),
    prefix: {
      project: w.matrix('prefix_conditioner.project.weight', [d, d]),
      bias: w.vector('prefix_conditioner.project.bias', [d]),
      norm: norm('prefix_conditioner.norm'),
    },
    embeddings: perCodebook('embeddings', MASK + 1),
    layers: Array.from({ length: c.layers }, (_, i) => {
      const at = `backbone.layers.${i}`
      return {
        norm: norm(`${at}.norm`),
        in: w.matrix(`${at}.mixer.in_proj.weight`, [(c.heads + 2 * c.kvHeads) * D, d], layers),
        out: w.matrix(`${at}.mixer.out_proj.weight`, [d, c.heads * D], layers),
        norm2: norm(`${at}.norm2`),
        fc1: w.matrix(`${at}.mlp.fc1.weight`, [2 * I, d], layers),
        fc2: w.matrix(`${at}.mlp.fc2.weight`, [d, I], layers),
      }
    }),
    norm: norm('backbone.norm_f'),
    heads: perCodebook('heads', CODES),
  }
}

function conditioner(w: Weights, config: ConditionerConfig, d: number, at: string): ConditionerWeights {
  const unconditional = config.unconditional && { unconditional: w.values(`${at}.uncond_vector`, [d]) }
  switch (config.kind) {
    case 'phonemes':
      return { config, weight: w.values(`${at}.phoneme_embedder.weight`, [PHONEMES, d]), ...unconditional }
    case 'passthrough': {
      const weight = w.values(`${at}.project.weight`, [d, config.width])
      return { config, weight, bias: w.values(`${at}.project.bias`, [d]), ...unconditional }
    }
    case 'fourier':
      return { config, weight: w.values(`${at}.weight`, [d / 2, config.width]), ...unconditional }
    case 'integer': {
      const rows = config.max - config.min + 1
      return { config, weight: w.values(`${at}.int_embedder.weight`, [rows, d]), ...unconditional }
    }
  }
}
