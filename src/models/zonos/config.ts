import { WeightsError } from '../../errors.ts'

/** A Zonos v0.1 transformer's config.json, checked: whatever this code does not know is an error. */
export interface ZonosConfig {
  readonly hidden: number
  readonly layers: number
  readonly heads: number
  readonly kvHeads: number
  readonly headDim: number
  readonly intermediate: number
  readonly eps: number
  /** Rotary pairs are neighbours (2i, 2i + 1); false: halves (i, i + D/2). */
  readonly interleaved: boolean
  /** Of the longest speech that it was trained on; what goes far beyond garbles. */
  readonly trainedSeconds: number
  /** In the order of their tokens in the prefix. */
  readonly conditioners: readonly ConditionerConfig[]
}

/** What a prefix token is made from. `unconditional`: a learned vector stands for a value that is left out. */
export type ConditionerConfig = { readonly name: string; readonly unconditional: boolean } & (
  | { readonly kind: 'phonemes' }
  | { readonly kind: 'passthrough'; readonly width: number }
  | { readonly kind: 'fourier'; readonly width: number; readonly min: number; readonly max: number }
  | { readonly kind: 'integer'; readonly min: number; readonly max: number }
)

/** Of every published checkpoint: the DAC codec's codes, and what stands for the end and for no code yet. */
export const CODEBOOKS = 9
export const EOS = 1024
export const MASK = 1025
/** Rows of a head: the codes and EOS. Embeddings have one more, for MASK. */
export const CODES = EOS + 1
/** Rows of the phoneme table: zonos.md 3.3. */
export const PHONEMES = 189

export const ROPE_THETA = 10000
/** Of every published checkpoint (zonos.md 5.1), whose config.json does not say it: the key trained_seconds is ours. */
const TRAINED_SECONDS = 30

type Json = Readonly<Record<string, unknown>>

/**
 * Reads config.json of Zonos v0.1-transformer.
 *
 * @throws WeightsError naming the key that is missing or not understood
 */
export function zonosConfig(json: unknown): ZonosConfig {
  const root = object(json, 'config.json')
  const b = object(root.backbone, 'backbone')
  const a = object(b.attn_cfg, 'attn_cfg')
  expect(root, 'eos_token_id', EOS)
  expect(root, 'masked_token_id', MASK)
  if (Object.keys(object(b.ssm_cfg ?? {}, 'ssm_cfg')).length > 0)
    throw wrong('ssm_cfg', b.ssm_cfg, 'an empty object: this is the transformer, not the hybrid')
  expect(b, 'rms_norm', false, undefined)
  expect(a, 'causal', true)
  expect(a, 'qkv_proj_bias', false)
  expect(a, 'out_proj_bias', false)
  const hidden = whole(b, 'd_model')
  const layers = whole(b, 'n_layer')
  const [heads, kvHeads] = [whole(a, 'num_heads'), whole(a, 'num_heads_kv')]
  const headDim = a.head_dim === undefined ? hidden / heads : whole(a, 'head_dim')
  const attention = b.attn_layer_idx
  if (!Array.isArray(attention) || attention.length !== layers || attention.some((n, i) => n !== i))
    throw wrong('attn_layer_idx', attention, `every layer from 0 to ${layers - 1}`)
  expect(a, 'rotary_emb_dim', headDim)
  if (heads % kvHeads !== 0) throw wrong('num_heads', heads, `a multiple of num_heads_kv, which is ${kvHeads}`)
  const prefix = object(root.prefix_conditioner, 'prefix_conditioner')
  expect(prefix, 'projection', 'linear')
  const { conditioners } = prefix
  if (!Array.isArray(conditioners)) throw wrong('conditioners', conditioners, 'a list')
  return {
    hidden,
    layers,
    heads,
    kvHeads,
    headDim,
    intermediate: whole(b, 'attn_mlp_d_intermediate'),
    eps: b.norm_epsilon === undefined ? 1e-5 : number(b, 'norm_epsilon'),
    interleaved: a.rotary_emb_interleaved === true,
    trainedSeconds: root.trained_seconds === undefined ? TRAINED_SECONDS : whole(root, 'trained_seconds'),
    conditioners: conditioners.map((c) => conditioner(object(c, 'conditioners'))),
  }
}

function conditioner(c: Json): ConditionerConfig {
  expect(c, 'uncond_type', 'learned', 'none', undefined)
  const { name, type } = c
  if (typeof name !== 'string') throw wrong('conditioners.name', name, 'a name')
  const common = { name, unconditional: c.uncond_type === 'learned' }
  if (type === 'PassthroughConditioner') expect(c, 'projection', 'linear')
  else expect(c, 'projection', 'none', undefined)
  switch (type) {
    case 'EspeakPhonemeConditioner':
      return { ...common, kind: 'phonemes' }
    case 'PassthroughConditioner':
      return { ...common, kind: 'passthrough', width: whole(c, 'cond_dim') }
    case 'FourierConditioner': {
      const width = c.input_dim === undefined ? 1 : whole(c, 'input_dim')
      return { ...common, kind: 'fourier', width, min: number(c, 'min_val', 0), max: number(c, 'max_val', 1) }
    }
    case 'IntegerConditioner':
      return { ...common, kind: 'integer', min: number(c, 'min_val', 0), max: number(c, 'max_val', 512) }
    default:
      throw wrong('conditioners.type', type, 'a conditioner of Zonos v0.1')
  }
}

function object(value: unknown, key: string): Json {
  if (value && typeof value === 'object' && !Array.isArray(value)) return value as Json
  throw wrong(key, value, 'an object')
}

function expect(t: Json, key: string, ...expected: unknown[]): void {
  if (!expected.includes(t[key])) throw wrong(key, t[key], expected.filter((e) => e !== undefined).join(' or '))
}

function whole(t: Json, key: string): number {
  const value = t[key]
  if (Number.isSafeInteger(value) && (value as number) > 0) return value as number
  throw wrong(key, value, 'a positive integer')
}

function number(t: Json, key: string, missing?: number): number {
  const value = t[key] ?? missing
  if (typeof value === 'number' && Number.isFinite(value)) return value
  throw wrong(key, value, 'a number')
}

const wrong = (key: string, value: unknown, expected: string): WeightsError =>
  new WeightsError('unsupported', `config.json: ${key} is ${JSON.stringify(value) ?? 'missing'}, expected ${expected}`)
