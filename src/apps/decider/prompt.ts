import type { Tokenizer } from '../../text/tokenizer.ts'
import { LETTERS } from './labels.ts'
import type { Row } from './scorer.ts'

/** One question as the model reads it. */
export interface Block {
  readonly question: string
  readonly options: readonly string[]
}

export interface Context {
  readonly ids: readonly number[]
  /** Tokens cut from the end of the state. */
  readonly truncatedTokens: number
}

/** The head of a row: `Context:\n<state>`, cut to its first `maxTokens` ids (those of `Context:\n` count). */
export function encodeContext(tokenizer: Tokenizer, state: string, maxTokens: number): Context {
  const ids = tokenizer.encode(`Context:\n${state}`)
  return { ids: ids.slice(0, maxTokens), truncatedTokens: Math.max(0, ids.length - maxTokens) }
}

/**
 * The plain, state-first layout: the context, then the questions, numbered when there are several. Nothing follows an
 * answer slot but the next question, so questions see earlier questions and never earlier answers.
 */
export function buildRow(
  tokenizer: Tokenizer,
  labels: readonly number[],
  context: Context,
  blocks: readonly Block[],
): Row {
  const pieces = [context.ids]
  const slots: number[] = []
  let length = context.ids.length
  blocks.forEach((block, i) => {
    const ids = encodeBlock(tokenizer, labels, block, blocks.length > 1 ? ` ${i + 1}` : '')
    length += ids.length
    pieces.push(ids)
    slots.push(length - 1) // the ` (` that the letter follows
  })
  return { ids: pieces.flat(), slots }
}

/** Pieces are encoded one by one, as in training: merges across a piece's edge would give other ids. */
function encodeBlock(tokenizer: Tokenizer, labels: readonly number[], block: Block, number: string): number[] {
  const head = `\n\nQuestion${number}: ${block.question}\nOptions:`
  const tail = `\nAnswer${number}: (`
  if (block.options.length <= LETTERS.length) {
    const options = block.options.map((option, i) => `\n(${LETTERS[i]}) ${option}`)
    return tokenizer.encode(head + options.join('') + tail)
  }
  const open = tokenizer.encode('\n(')
  const options = block.options.map((option, i) => [...open, labels[i]!, ...tokenizer.encode(`) ${option}`)])
  return [tokenizer.encode(head), ...options, tokenizer.encode(tail)].flat()
}

/** Tokens of a request whose rows share their longest common prefix: it counts once. */
export function countTokens(rows: readonly Row[]): number {
  const [first, ...rest] = rows.map((row) => row.ids)
  if (!first) return 0
  let shared = first.length
  for (const ids of rest) {
    let same = 0
    while (same < shared && ids[same] === first[same]) same++
    shared = same
  }
  return rows.reduce((sum, row) => sum + row.ids.length - shared, shared)
}
