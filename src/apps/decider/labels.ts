import { WeightsError } from '../../errors.ts'
import type { Tokenizer } from '../../text/tokenizer.ts'

export const MAX_LABELS = 255
/** The letters of a narrow question; a wide one uses the rest of the table. */
export const LETTERS = 'ABCDEFGHIJ'

const ALPHABET = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ']

/**
 * Token ids of the answer labels: A..Z, then AA, AB, ... ZZ, as far as each is a single token, at most 255.
 * Rows of the LM head are read in this order. Throws WeightsError when the tokenizer splits one of A..J.
 */
export function labelTable(tokenizer: Tokenizer): readonly number[] {
  const pairs = ALPHABET.flatMap((first) => ALPHABET.map((second) => first + second))
  const single = [...ALPHABET, ...pairs].flatMap((text) => {
    const ids = tokenizer.encode(text)
    return ids.length === 1 ? [{ text, id: ids[0]! }] : []
  })
  const labels = single.slice(0, MAX_LABELS)
  const first = labels
    .slice(0, LETTERS.length)
    .map(({ text }) => text)
    .join('')
  if (first !== LETTERS || new Set(labels.map(({ id }) => id)).size < labels.length)
    throw new WeightsError(
      'format',
      `labels: the tokenizer has single distinct tokens for '${first}', expected A to J; use the tokenizer.json of a Decider model`,
    )
  return labels.map(({ id }) => id)
}
