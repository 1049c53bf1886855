import { isWhole, type Json, jsonReader } from './json.ts'

const { expect, flag, object, positive, whole, wrong } = jsonReader('config.json')

/** The text half of a Qwen3.5 config.json, checked: whatever this code does not know is an error. */
export interface TextConfig {
  readonly hidden: number
  readonly intermediate: number
  readonly vocabulary: number
  readonly layers: readonly LayerKind[]
  readonly attention: AttentionConfig
  readonly delta: DeltaConfig
  readonly eps: number
  /** Are the rows of the embedding also those of the LM head? */
  readonly tied: boolean
  readonly maxPositions: number
}

export type LayerKind = 'linear' | 'full'

/** Gated attention of every full layer. */
export interface AttentionConfig {
  readonly heads: number
  readonly kvHeads: number
  readonly headDim: number
  readonly partialRotaryFactor: number
  readonly theta: number
  /** Frequencies of the T, H and W axes, interleaved. */
  readonly mropeSection: readonly [number, number, number]
}

/** The gated delta net of every linear layer. */
export interface DeltaConfig {
  readonly keyHeads: number
  readonly valueHeads: number
  readonly keyWidth: number
  readonly valueWidth: number
  readonly kernel: number
}

/**
 * Reads config.json of a Qwen3_5ForConditionalGeneration or Qwen3_5ForCausalLM.
 *
 * @throws WeightsError naming the key that is missing or not understood
 */
export function textConfig(json: unknown): TextConfig {
  const root = object(json, 'config.json')
  const t = root.text_config === undefined ? root : object(root.text_config, 'text_config')
  expect(root, 'model_type', 'qwen3_5', 'qwen3_5_text')
  expect(t, 'model_type', 'qwen3_5_text', 'qwen3_5')
  expect(t, 'hidden_act', 'silu')
  for (const [key, value] of [
    ['attention_bias', false],
    ['attn_output_gate', true],
  ] as const) {
    if (t[key] !== undefined) expect(t, key, value)
  }
  const config: TextConfig = {
    hidden: whole(t, 'hidden_size'),
    intermediate: whole(t, 'intermediate_size'),
    vocabulary: whole(t, 'vocab_size'),
    layers: layerKinds(t),
    attention: attention(t),
    delta: {
      keyHeads: whole(t, 'linear_num_key_heads'),
      valueHeads: whole(t, 'linear_num_value_heads'),
      keyWidth: whole(t, 'linear_key_head_dim'),
      valueWidth: whole(t, 'linear_value_head_dim'),
      kernel: whole(t, 'linear_conv_kernel_dim'),
    },
    eps: positive(t, 'rms_norm_eps'),
    tied: flag(t.tie_word_embeddings === undefined ? root : t, 'tie_word_embeddings'),
    maxPositions: whole(t, 'max_position_embeddings'),
  }
  divides('linear_num_key_heads', config.delta.keyHeads, 'linear_num_value_heads', config.delta.valueHeads)
  divides('num_key_value_heads', config.attention.kvHeads, 'num_attention_heads', config.attention.heads)
  return config
}

function attention(t: Json): AttentionConfig {
  const rope = object(t.rope_parameters ?? t.rope_scaling, 'rope_parameters')
  expect(rope, 'rope_type', 'default')
  expect(rope, 'mrope_interleaved', true)
  const headDim = whole(t, 'head_dim')
  const partialRotaryFactor = positive('partial_rotary_factor' in rope ? rope : t, 'partial_rotary_factor')
  const theta = positive('rope_theta' in rope ? rope : t, 'rope_theta')
  const half = (headDim * partialRotaryFactor) / 2
  const section = rope.mrope_section
  const fits = Array.isArray(section) && section.length === 3 && section.every(isWhole)
  if (!fits || section.reduce((a, b) => a + b, 0) !== half)
    throw wrong('mrope_section', section, `three positive integers that add up to ${half}, half the rotary dimensions`)
  return {
    heads: whole(t, 'num_attention_heads'),
    kvHeads: whole(t, 'num_key_value_heads'),
    headDim,
    partialRotaryFactor,
    theta,
    mropeSection: section as [number, number, number],
  }
}

/** `layer_types` where it is given (pruned models leave the 3:1 pattern), else every n-th layer is full attention. */
function layerKinds(t: Json): LayerKind[] {
  const count = whole(t, 'num_hidden_layers')
  const types = t.layer_types
  if (types === undefined) {
    const interval = whole(t, 'full_attention_interval')
    return Array.from({ length: count }, (_, i) => ((i + 1) % interval === 0 ? 'full' : 'linear'))
  }
  const kinds: Record<string, LayerKind> = { linear_attention: 'linear', full_attention: 'full' }
  if (!Array.isArray(types) || types.length !== count || types.some((name) => !(name in kinds)))
    throw wrong('layer_types', types, `${count} names, each linear_attention or full_attention`)
  return types.map((name) => kinds[name]!)
}

function divides(a: string, n: number, b: string, m: number): void {
  if (m % n !== 0) throw wrong(b, m, `a multiple of ${a}, which is ${n}`)
}

/** The vision tower of a Qwen3.5 config.json, and the tokens around its images. */
export interface VisionConfig {
  readonly hidden: number
  readonly intermediate: number
  readonly depth: number
  readonly heads: number
  readonly headDim: number
  /** Pixels of a patch's side, patches of a token's side. */
  readonly patch: number
  readonly merge: number
  /** Frames of a patch; those of a still are the same. */
  readonly frames: number
  /** Learned positions on each side of their square. */
  readonly side: number
  /** Frequencies of the rotary positions. */
  readonly theta: number
  /** Width of an image token: the text model's. */
  readonly out: number
  /** Of layer norms; no config says so. */
  readonly eps: number
  readonly imageToken: number
  readonly visionStart: number
  readonly visionEnd: number
}

/**
 * Reads the vision half of config.json; undefined where there is none.
 *
 * @throws WeightsError naming the key that is missing or not understood
 */
export function visionConfig(json: unknown): VisionConfig | undefined {
  const root = object(json, 'config.json')
  if (root.vision_config === undefined || root.vision_config === null) return undefined
  const v = object(root.vision_config, 'vision_config')
  expect(v, 'hidden_act', 'gelu_pytorch_tanh')
  expect(v, 'in_channels', 3)
  const stacked = v.deepstack_visual_indexes ?? []
  if (!Array.isArray(stacked) || stacked.length > 0)
    throw wrong('deepstack_visual_indexes', stacked, 'an empty list: Qwen3.5 has no deepstack')
  const [hidden, heads, positions] = [
    whole(v, 'hidden_size'),
    whole(v, 'num_heads'),
    whole(v, 'num_position_embeddings'),
  ]
  const rope = v.rope_parameters === undefined ? { rope_theta: 10000 } : object(v.rope_parameters, 'rope_parameters')
  divides('4 num_heads', 4 * heads, 'hidden_size', hidden) // a head has a cosine and a sine of rows and of columns
  if (Math.sqrt(positions) % 1 !== 0) throw wrong('num_position_embeddings', positions, 'a square')
  return {
    hidden,
    intermediate: whole(v, 'intermediate_size'),
    depth: whole(v, 'depth'),
    heads,
    headDim: hidden / heads,
    patch: whole(v, 'patch_size'),
    merge: whole(v, 'spatial_merge_size'),
    frames: whole(v, 'temporal_patch_size'),
    side: Math.sqrt(positions),
    theta: positive(rope, 'rope_theta'),
    out: whole(v, 'out_hidden_size'),
    eps: 1e-6,
    imageToken: whole(root, 'image_token_id'),
    visionStart: whole(root, 'vision_start_token_id'),
    visionEnd: whole(root, 'vision_end_token_id'),
  }
}
