import { type TextConfig, textConfig, type VisionConfig } from '../src/models/qwen3_5/config.ts'
import { type PublishedSize, publishedConfig, publishedJson, publishedVision } from '../src/models/qwen3_5/published.ts'

export type ShapeName = 'tiny' | PublishedSize

/** The published Qwen3.5 text models; `tiny` is for smoke tests. */
export const shape = (name: ShapeName): TextConfig => (name === 'tiny' ? tiny() : publishedConfig(name))

/** Their vision towers. */
export const visionShape = (name: ShapeName): VisionConfig =>
  name === 'tiny' ? { ...publishedVision('0.8B'), ...tinyVision } : publishedVision(name)

const tinyVision = { hidden: 128, intermediate: 256, depth: 2, heads: 2, headDim: 64, side: 16, out: 64 }

function tiny(): TextConfig {
  const json = publishedJson('0.8B')
  return textConfig({
    ...json,
    hidden_size: 64,
    intermediate_size: 128,
    vocab_size: 512,
    num_hidden_layers: 4,
    num_attention_heads: 2,
    num_key_value_heads: 1,
    head_dim: 64,
    linear_num_key_heads: 2,
    linear_num_value_heads: 2,
    linear_key_head_dim: 32,
    linear_value_head_dim: 32,
    rope_parameters: { ...(json.rope_parameters as object), mrope_section: [3, 3, 2] },
  })
}
