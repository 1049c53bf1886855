import { WeightsError } from '../../errors.ts'
import type { Tensor } from '../../graph/tensor.ts'
import type { RowTable, Weights } from '../../weights/load.ts'
import type { TextConfig } from './config.ts'

/** Matrices are [out, in]; matrices that one product reads lie one below another. H hidden, I intermediate. */
export interface TextWeights {
  /** [vocabulary, H], on the host: a request needs few of its rows. */
  readonly embedding: RowTable
  /** The LM head, where it is not the embedding. */
  readonly head: RowTable
  readonly layers: readonly LayerWeights[]
  readonly norm: Tensor // [H]
}

export interface LayerWeights {
  readonly inputNorm: Tensor // [H]
  readonly mixer: DeltaWeights | AttentionWeights
  readonly postNorm: Tensor // [H]
  readonly gateUp: Tensor // [2I, H]: gate, up
  readonly down: Tensor // [H, I]
}

export interface DeltaWeights {
  readonly kind: 'linear'
  readonly in: Tensor // [2·keys + 2·values + 2·valueHeads, H]: q k v, z, b, a
  readonly conv: Tensor // [2·keys + values, 1, kernel]
  readonly gates: Tensor // [2, valueHeads]: A_log, dt_bias
  readonly norm: Tensor // [valueWidth]
  readonly out: Tensor // [H, values]
}

export interface AttentionWeights {
  readonly kind: 'full'
  readonly in: Tensor // [2·heads·D + 2·kvHeads·D, H]: per head query and gate, then k, v
  readonly norms: Tensor // [2, D]: of q, of k
  readonly out: Tensor // [H, heads·D]
}

/** Asks for every tensor of the text model by its canonical name; shapes are checked against the config. */
export function textWeights(w: Weights, c: TextConfig): TextWeights {
  if (w.has('lm_head.weight') && c.tied) w.ignore((name) => name === 'lm_head.weight')
  const embedding = w.rows('embed_tokens.weight', [c.vocabulary, c.hidden])
  return {
    embedding,
    head: c.tied ? embedding : w.rows('lm_head.weight', [c.vocabulary, c.hidden]),
    layers: c.layers.map((kind, i) => {
      const at = `layers.${i}`
      return {
        inputNorm: w.vector(`${at}.input_layernorm.weight`, [c.hidden]),
        mixer: kind === 'linear' ? delta(w, c, `${at}.linear_attn`) : attention(w, c, `${at}.self_attn`),
        postNorm: w.vector(`${at}.post_attention_layernorm.weight`, [c.hidden]),
        gateUp: w.stack(
          `${at}.mlp.gate_up`,
          [
            { name: `${at}.mlp.gate_proj.weight`, rows: c.intermediate },
            { name: `${at}.mlp.up_proj.weight`, rows: c.intermediate },
          ],
          c.hidden,
        ),
        down: w.matrix(`${at}.mlp.down_proj.weight`, [c.hidden, c.intermediate]),
      }
    }),
    norm: w.vector('norm.weight', [c.hidden]),
  }
}

function delta(w: Weights, c: TextConfig, at: string): DeltaWeights {
  const { keyHeads, valueHeads, keyWidth, valueWidth, kernel } = c.delta
  const values = valueHeads * valueWidth
  const channels = 2 * keyHeads * keyWidth + values
  if (w.shapeOf(`${at}.conv1d.weight`)?.[2] === 1)
    throw new WeightsError(
      'unsupported',
      `${at}.conv1d.weight has shape [${channels}, ${kernel}, 1]: a file converted for MLX, whose norms are changed too; use the original checkpoint`,
    )
  return {
    kind: 'linear',
    in: w.stack(
      `${at}.in_proj`,
      [
        { name: `${at}.in_proj_qkv.weight`, rows: channels },
        { name: `${at}.in_proj_z.weight`, rows: values },
        { name: `${at}.in_proj_b.weight`, rows: valueHeads },
        { name: `${at}.in_proj_a.weight`, rows: valueHeads },
      ],
      c.hidden,
    ),
    conv: w.vector(`${at}.conv1d.weight`, [channels, 1, kernel]),
    gates: w.vectors(`${at}.gates`, [`${at}.A_log`, `${at}.dt_bias`], valueHeads),
    norm: w.vector(`${at}.norm.weight`, [valueWidth]),
    out: w.matrix(`${at}.out_proj.weight`, [c.hidden, values]),
  }
}

function attention(w: Weights, c: TextConfig, at: string): AttentionWeights {
  const { heads, kvHeads, headDim } = c.attention
  return {
    kind: 'full',
    in: w.stack(
      `${at}.in_proj`,
      [
        { name: `${at}.q_proj.weight`, rows: 2 * heads * headDim },
        { name: `${at}.k_proj.weight`, rows: kvHeads * headDim },
        { name: `${at}.v_proj.weight`, rows: kvHeads * headDim },
      ],
      c.hidden,
    ),
    norms: w.vectors(`${at}.qk_norm`, [`${at}.q_norm.weight`, `${at}.k_norm.weight`], headDim),
    out: w.matrix(`${at}.o_proj.weight`, [c.hidden, heads * headDim]),
  }
}
