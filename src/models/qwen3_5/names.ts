/**
 * The one name behind the variants that savers of Qwen3.5 write: 'layers.0.mlp.up_proj.weight', 'embed_tokens.weight',
 * 'visual.blocks.0...'. Undefined for the multi-token-prediction head, which nobody here runs.
 */
export function canonicalName(stored: string): string | undefined {
  if (/(^|\.)mtp\./.test(stored)) return undefined
  const name = stored.replace(/^(?:(?:model|language_model)\.)+/, '')
  return name.replace(/^vision_tower\./, 'visual.')
}
