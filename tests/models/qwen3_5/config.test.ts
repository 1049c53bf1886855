import { describe, expect, test } from 'vitest'
import { textConfig } from '../../../src/models/qwen3_5/config.ts'
import { canonicalName } from '../../../src/models/qwen3_5/names.ts'
import { fixtureJson } from '../../fixtures.ts'

const tiny = () => fixtureJson<Record<string, unknown>>('qwen35-text-tiny/config.json')

test('reads a flat config', () => {
  expect(textConfig(tiny())).toMatchObject({
    hidden: 128,
    layers: ['linear', 'linear', 'linear', 'full'],
    attention: { heads: 4, kvHeads: 2, headDim: 64, mropeSection: [3, 3, 2] },
    delta: { keyHeads: 2, valueHeads: 4, keyWidth: 32, valueWidth: 32, kernel: 4 },
    tied: true,
  })
})

test('reads the text half of a nested config, and layers by interval', () => {
  const { layer_types: _, ...text } = tiny()
  const nested = {
    model_type: 'qwen3_5',
    text_config: { ...text, model_type: 'qwen3_5_text', full_attention_interval: 2 },
  }
  expect(textConfig(nested).layers).toEqual(['linear', 'full', 'linear', 'full'])
})

describe('what is not understood is an error', () => {
  test.each<[string, unknown]>([
    ['model_type', 'qwen3_next'],
    ['hidden_act', 'gelu'],
    ['attention_bias', true],
    ['hidden_size', '128'],
    ['hidden_size', undefined],
    ['rms_norm_eps', 0],
    ['linear_num_value_heads', 3],
    ['layer_types', ['linear_attention', 'sliding_attention', 'full_attention', 'full_attention']],
    ['rope_parameters', { rope_type: 'yarn' }],
    ['tie_word_embeddings', undefined],
  ])('%s: %j', (key, value) => {
    const change = () => textConfig({ ...tiny(), [key]: value })
    expect(change).toThrow(expect.objectContaining({ name: 'WeightsError', code: 'unsupported' }))
  })

  test('not an object', () => {
    for (const json of [null, [], 'x', 3]) expect(() => textConfig(json)).toThrow('config.json is')
  })
})

test.each([
  ['model.language_model.layers.0.mlp.up_proj.weight', 'layers.0.mlp.up_proj.weight'],
  ['model.layers.0.mlp.up_proj.weight', 'layers.0.mlp.up_proj.weight'],
  ['layers.3.self_attn.q_norm.weight', 'layers.3.self_attn.q_norm.weight'],
  ['language_model.model.norm.weight', 'norm.weight'],
  ['model.language_model.language_model.language_model.embed_tokens.weight', 'embed_tokens.weight'],
  ['model.language_model.visual.blocks.0.norm1.bias', 'visual.blocks.0.norm1.bias'],
  ['vision_tower.blocks.0.norm1.bias', 'visual.blocks.0.norm1.bias'],
  ['lm_head.weight', 'lm_head.weight'],
  ['mtp.fc.weight', undefined],
  ['model.mtp.layers.0.input_layernorm.weight', undefined],
])('%s is %s', (stored, name) => expect(canonicalName(stored)).toBe(name))
