import type { TextConfig } from '../../../src/models/qwen3_5/config.ts'
import type { Checkpoint, StoredTensor } from '../../../src/weights/safetensors.ts'
import { parseHeader } from '../../../src/weights/safetensors.ts'
import type { Source } from '../../../src/weights/source.ts'
import { file } from '../../weights/build.ts'

/** What a published text checkpoint stores: BF16, except A_log and the norm of linear layers, which are F32. */
export function publishedTensors(c: TextConfig): { name: string; dtype: 'BF16' | 'F32'; shape: number[] }[] {
  const { hidden: H, intermediate: I } = c
  const { keyHeads, valueHeads, keyWidth, valueWidth, kernel } = c.delta
  const { heads, kvHeads, headDim } = c.attention
  const values = valueHeads * valueWidth
  const channels = 2 * keyHeads * keyWidth + values
  const bf16 = (name: string, ...shape: number[]) => ({ name, dtype: 'BF16' as const, shape })
  const f32 = (name: string, ...shape: number[]) => ({ name, dtype: 'F32' as const, shape })
  const layers = c.layers.flatMap((kind, i) => {
    const at = `model.layers.${i}`
    const mixer =
      kind === 'full'
        ? [
            bf16(`${at}.self_attn.q_proj.weight`, 2 * heads * headDim, H),
            bf16(`${at}.self_attn.k_proj.weight`, kvHeads * headDim, H),
            bf16(`${at}.self_attn.v_proj.weight`, kvHeads * headDim, H),
            bf16(`${at}.self_attn.o_proj.weight`, H, heads * headDim),
            bf16(`${at}.self_attn.q_norm.weight`, headDim),
            bf16(`${at}.self_attn.k_norm.weight`, headDim),
          ]
        : [
            bf16(`${at}.linear_attn.in_proj_qkv.weight`, channels, H),
            bf16(`${at}.linear_attn.in_proj_z.weight`, values, H),
            bf16(`${at}.linear_attn.in_proj_b.weight`, valueHeads, H),
            bf16(`${at}.linear_attn.in_proj_a.weight`, valueHeads, H),
            bf16(`${at}.linear_attn.conv1d.weight`, channels, 1, kernel),
            f32(`${at}.linear_attn.A_log`, valueHeads),
            bf16(`${at}.linear_attn.dt_bias`, valueHeads),
            f32(`${at}.linear_attn.norm.weight`, valueWidth),
            bf16(`${at}.linear_attn.out_proj.weight`, H, values),
          ]
    return [
      ...mixer,
      bf16(`${at}.input_layernorm.weight`, H),
      bf16(`${at}.post_attention_layernorm.weight`, H),
      bf16(`${at}.mlp.gate_proj.weight`, I, H),
      bf16(`${at}.mlp.up_proj.weight`, I, H),
      bf16(`${at}.mlp.down_proj.weight`, H, I),
    ]
  })
  return [bf16('model.embed_tokens.weight', c.vocabulary, H), ...layers, bf16('model.norm.weight', H)]
}

/** The beginning of such a file, and how long the whole is. */
export function publishedFile(c: TextConfig): { head: Uint8Array; bytes: number; tensors: StoredTensor[] } {
  let end = 0
  const entries = publishedTensors(c).map(({ name, dtype, shape }) => {
    const begin = end
    end += shape.reduce((n, d) => n * d, dtype === 'F32' ? 4 : 2)
    return [name, { dtype, shape, data_offsets: [begin, end] }]
  })
  const head = file(JSON.stringify(Object.fromEntries(entries)))
  const bytes = head.length + end
  return { head, bytes, tensors: parseHeader(head.subarray(8), bytes, 'model.safetensors') }
}

/** The checkpoint of a published model, of which nothing can be read. */
export function publishedCheckpoint(c: TextConfig): Checkpoint {
  const { tensors } = publishedFile(c)
  const bytes = tensors.reduce((sum, t) => sum + t.end - t.begin, 0)
  const nothing = () => Promise.reject(new Error('there is nothing to read'))
  const source: Source = { name: 'published', remote: false, size: nothing, read: nothing }
  return { source, tensors: new Map(tensors.map((t) => [t.name, t])), bytes }
}
