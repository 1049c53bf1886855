import { type TextConfig, textConfig, type VisionConfig, visionConfig } from './config.ts'

export type PublishedSize = '0.8B' | '2B'
export const publishedSizes: readonly PublishedSize[] = ['0.8B', '2B']

/** config.json of a published Qwen3.5 text model as far as it is read; the sizes differ in two widths only. */
export function publishedJson(size: PublishedSize): Readonly<Record<string, unknown>> {
  const [hidden_size, intermediate_size] = { '0.8B': [1024, 3584], '2B': [2048, 6144] }[size]
  return {
    model_type: 'qwen3_5_text',
    hidden_act: 'silu',
    hidden_size,
    intermediate_size,
    vocab_size: 248320,
    num_hidden_layers: 24,
    full_attention_interval: 4,
    num_attention_heads: 8,
    num_key_value_heads: 2,
    head_dim: 256,
    linear_num_key_heads: 16,
    linear_num_value_heads: 16,
    linear_key_head_dim: 128,
    linear_value_head_dim: 128,
    linear_conv_kernel_dim: 4,
    rope_parameters: {
      rope_type: 'default',
      rope_theta: 10_000_000,
      partial_rotary_factor: 0.25,
      mrope_interleaved: true,
      mrope_section: [11, 11, 10],
    },
    rms_norm_eps: 1e-6,
    tie_word_embeddings: true,
    max_position_embeddings: 262144,
  }
}

export const publishedConfig = (size: PublishedSize): TextConfig => textConfig(publishedJson(size))

/** The vision half of config.json of a published Qwen3.5 model, as far as it is read. */
export function publishedVision(size: PublishedSize): VisionConfig {
  const [depth, hidden_size, num_heads, intermediate_size, out_hidden_size] = {
    '0.8B': [12, 768, 12, 3072, 1024],
    '2B': [24, 1024, 16, 4096, 2048],
  }[size]
  const vision_config = {
    ...{ depth, hidden_size, num_heads, intermediate_size, out_hidden_size },
    hidden_act: 'gelu_pytorch_tanh',
    in_channels: 3,
    patch_size: 16,
    temporal_patch_size: 2,
    spatial_merge_size: 2,
    num_position_embeddings: 2304,
    deepstack_visual_indexes: [],
  }
  const tokens = { image_token_id: 248056, vision_start_token_id: 248053, vision_end_token_id: 248054 }
  return visionConfig({ vision_config, ...tokens }) as VisionConfig
}
