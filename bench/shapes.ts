import { type TextConfig, textConfig } from '../src/models/qwen3_5/config.ts'

export type ShapeName = 'tiny' | '0.8B' | '2B'

/** config.json of the published Qwen3.5 text models, which differ in two widths only; `tiny` is for smoke tests. */
export function shape(name: ShapeName): TextConfig {
  const [hidden_size, intermediate_size] = { tiny: [64, 128], '0.8B': [1024, 3584], '2B': [2048, 6144] }[name]
  const small = name === 'tiny'
  return textConfig({
    model_type: 'qwen3_5_text',
    hidden_act: 'silu',
    hidden_size,
    intermediate_size,
    vocab_size: small ? 512 : 248320,
    num_hidden_layers: small ? 4 : 24,
    full_attention_interval: 4,
    num_attention_heads: small ? 2 : 8,
    num_key_value_heads: small ? 1 : 2,
    head_dim: small ? 64 : 256,
    linear_num_key_heads: small ? 2 : 16,
    linear_num_value_heads: small ? 2 : 16,
    linear_key_head_dim: small ? 32 : 128,
    linear_value_head_dim: small ? 32 : 128,
    linear_conv_kernel_dim: 4,
    rope_parameters: {
      rope_type: 'default',
      rope_theta: 10_000_000,
      partial_rotary_factor: 0.25,
      mrope_interleaved: true,
      mrope_section: small ? [3, 3, 2] : [11, 11, 10],
    },
    rms_norm_eps: 1e-6,
    tie_word_embeddings: true,
    max_position_embeddings: 262144,
  })
}

/** One matrix product of the model: y [M, N] = x [M, K] wᵀ. */
export interface Product {
  readonly name: string
  readonly N: number
  readonly K: number
  /** How many layers have it. */
  readonly layers: number
}

/** The products of every token, by the names of their weights. */
export function products({ hidden, intermediate, layers, attention, delta }: TextConfig): Product[] {
  const keys = delta.keyHeads * delta.keyWidth
  const values = delta.valueHeads * delta.valueWidth
  const queries = attention.heads * attention.headDim
  const linear = layers.filter((kind) => kind === 'linear').length
  const full = layers.length - linear
  return [
    { name: 'delta in', N: 2 * keys + 2 * values + 2 * delta.valueHeads, K: hidden, layers: linear },
    { name: 'delta out', N: hidden, K: values, layers: linear },
    { name: 'attention in', N: 2 * queries + 2 * attention.kvHeads * attention.headDim, K: hidden, layers: full },
    { name: 'attention out', N: hidden, K: queries, layers: full },
    { name: 'gate up', N: 2 * intermediate, K: hidden, layers: layers.length },
    { name: 'down', N: hidden, K: intermediate, layers: layers.length },
  ]
}
