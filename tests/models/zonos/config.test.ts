import { describe, expect, test } from 'vitest'
import nano from '../../../public/models/zonos-nano/config.json' with { type: 'json' }
import { zonosConfig } from '../../../src/models/zonos/config.ts'
import { fixtureJson } from '../../fixtures.ts'

test('reads a config, with defaults for what is left out', () => {
  const c = zonosConfig(fixtureJson('zonos-transformer-tiny/config.json'))
  expect(c).toMatchObject({ hidden: 128, layers: 3, heads: 4, kvHeads: 2, headDim: 32, intermediate: 256, eps: 1e-5 })
  expect(c.interleaved).toBe(true)
  expect(c.trainedSeconds, 'of the published models').toBe(30)
  expect(zonosConfig(nano).trainedSeconds).toBe(5)
  expect(c.conditioners).toEqual([
    { name: 'espeak', kind: 'phonemes', unconditional: false },
    { name: 'speaker', kind: 'passthrough', width: 128, unconditional: true },
    { name: 'emotion', kind: 'fourier', width: 8, min: 0, max: 1, unconditional: true },
    { name: 'fmax', kind: 'fourier', width: 1, min: 0, max: 24000, unconditional: true },
    { name: 'pitch_std', kind: 'fourier', width: 1, min: 0, max: 400, unconditional: true },
    { name: 'speaking_rate', kind: 'fourier', width: 1, min: 0, max: 40, unconditional: true },
    { name: 'language_id', kind: 'integer', min: -1, max: 126, unconditional: true },
  ])
})

/** The nano config with one key changed, given by its path. */
function changed(path: string, value: unknown): unknown {
  const config = structuredClone(nano) as Record<string, unknown>
  const keys = path.split('.')
  const holder = keys.slice(0, -1).reduce((at, key) => at[key] as Record<string, unknown>, config)
  holder[keys.at(-1)!] = value
  return config
}

describe('what is not understood is an error', () => {
  test.each<[string, unknown, string]>([
    ['backbone.ssm_cfg', { layer: 'Mamba2' }, 'this is the transformer'],
    ['backbone.rms_norm', true, 'rms_norm is true'],
    ['backbone.d_model', '256', 'd_model is "256", expected a positive integer'],
    ['backbone.attn_layer_idx', [0, 2], 'every layer from 0 to 5'],
    ['backbone.attn_cfg.rotary_emb_dim', 32, 'rotary_emb_dim is 32, expected 64'],
    ['backbone.attn_cfg.num_heads_kv', 3, 'a multiple of num_heads_kv, which is 3'],
    ['backbone.attn_cfg.qkv_proj_bias', true, 'qkv_proj_bias is true, expected false'],
    ['prefix_conditioner.projection', 'mlp', 'projection is "mlp", expected linear'],
    ['prefix_conditioner.conditioners', {}, 'expected a list'],
    ['prefix_conditioner.conditioners.1.projection', 'mlp', 'projection is "mlp", expected linear'],
    ['prefix_conditioner.conditioners.2.type', 'NoConditioner', 'a conditioner of Zonos v0.1'],
    ['eos_token_id', 7, 'eos_token_id is 7, expected 1024'],
  ])('%s: %j', (path, value, message) => {
    const read = () => zonosConfig(changed(path, value))
    expect(read).toThrow(expect.objectContaining({ name: 'WeightsError', code: 'unsupported' }))
    expect(read).toThrow(message)
  })

  test('not an object', () => {
    for (const json of [null, [], 'x', 3]) expect(() => zonosConfig(json)).toThrow('config.json is')
  })
})
