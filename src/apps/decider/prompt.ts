import type { Tokenizer } from '../../text/tokenizer.ts'
import { LETTERS } from './labels.ts'
import type { Row } from './scorer.ts'

/** One question as the model reads it. */
export interface Block {
  readonly question: string
  readonly options: readonly string[]
}

/** The state as one layout encodes it. */
export interface Context {
  readonly ids: readonly number[]
  /** Tokens cut from the end of the state. */
  readonly truncatedTokens: number
}

/**
 * How states and questions become rows. Pieces are encoded one by one, as in training: merges across a piece's edge
 * would give other ids. Questions are numbered when a row has several; they see earlier questions and never earlier
 * answers.
 */
export interface Layout {
  /** A state, cut to its first `maxTokens` ids, the question blocks never are. */
  context(state: string, maxTokens: number): Context
  /** Encodes the questions of a row once, for any number of states. */
  questions(blocks: readonly Block[]): Encoded
}

/** The questions of a row. */
export interface Encoded {
  /** Of a row: as many more than its context has. */
  readonly tokens: number
  about(context: Context): Row
}

/** The plain, state-first layout: `Context:`, then the questions, each with its answer slot. `Context:\n` counts as state. */
export const plainLayout = (tokenizer: Tokenizer, labels: readonly number[]): Layout => ({
  context: (state, maxTokens) => cut(tokenizer.encode(`Context:\n${state}`), maxTokens),
  questions(blocks) {
    const pieces = blocks.map((block, i) => {
      const head = headOf(block, numberOf(blocks, i))
      const tail = answerOf('\n', numberOf(blocks, i))
      if (isNarrow(block)) return tokenizer.encode(head + narrow(block) + tail)
      return [...tokenizer.encode(head), ...encodeOptions(tokenizer, labels, block), ...tokenizer.encode(tail)]
    })
    return { tokens: pieces.flat().length, about: ({ ids }) => rowOf([...ids], pieces) }
  },
})

/**
 * The schema-first layout: the questions, then the state, then the answer slots. Rows of the same questions begin alike
 * whatever the state, so that a scorer can keep what they begin with.
 */
export const schemaFirstLayout = (tokenizer: Tokenizer, labels: readonly number[]): Layout => ({
  context(state, maxTokens) {
    const { ids, truncatedTokens } = cut(tokenizer.encode(state), maxTokens)
    return { ids: [...tokenizer.encode('\n\nContext:\n'), ...ids], truncatedTokens }
  },
  questions(blocks) {
    const prefix = blocks.flatMap((block, i) => [
      ...tokenizer.encode(headOf(block, numberOf(blocks, i)).slice(i === 0 ? 2 : 0)), // no empty lines in front
      ...encodeOptions(tokenizer, labels, block),
    ])
    const answers = blocks.map((_, i) => tokenizer.encode(answerOf(i === 0 ? '\n\n' : '\n', numberOf(blocks, i))))
    return {
      tokens: prefix.length + answers.flat().length,
      about: ({ ids }) => ({ ...rowOf([...prefix, ...ids], answers), prefix: prefix.length }),
    }
  },
})

/** What a chat template puts around the text of one user turn. */
export interface ChatFrame {
  readonly head: string
  readonly tail: string
}

/** The chat layout: state and questions are the user's turn, the answer slots the model's. */
export function chatLayout(tokenizer: Tokenizer, labels: readonly number[], frame: ChatFrame): Layout {
  const head = tokenizer.encode(frame.head)
  const tail = tokenizer.encode(frame.tail)
  return {
    context(state, maxTokens) {
      const { ids, truncatedTokens } = cut(tokenizer.encode(`Context:\n${state}`), maxTokens)
      return { ids: [...head, ...ids], truncatedTokens }
    },
    questions(blocks) {
      const asked = blocks.flatMap((block, i) => [
        ...tokenizer.encode(headOf(block, numberOf(blocks, i))),
        ...encodeOptions(tokenizer, labels, block),
      ])
      const answers = blocks.map((_, i) => tokenizer.encode(answerOf(i === 0 ? '' : '\n', numberOf(blocks, i))))
      return {
        tokens: asked.length + tail.length + answers.flat().length,
        about: ({ ids }) => rowOf([...ids, ...asked, ...tail], answers),
      }
    },
  }
}

/** Ends a row with pieces that each end in a slot: the ` (` that the letter follows. */
function rowOf(ids: number[], pieces: readonly (readonly number[])[]): Row {
  const slots = pieces.map((piece) => {
    for (const id of piece) ids.push(id)
    return ids.length - 1
  })
  return { ids, slots }
}

const cut = (ids: readonly number[], maxTokens: number): Context => ({
  ids: ids.slice(0, maxTokens),
  truncatedTokens: Math.max(0, ids.length - maxTokens),
})

const numberOf = (blocks: readonly Block[], i: number): string => (blocks.length > 1 ? ` ${i + 1}` : '')
const headOf = ({ question }: Block, number: string): string => `\n\nQuestion${number}: ${question}\nOptions:`
export const answerOf = (before: string, number: string): string => `${before}Answer${number}: (`

const isNarrow = ({ options }: Block): boolean => options.length <= LETTERS.length
const narrow = ({ options }: Block): string => options.map((option, i) => `\n(${LETTERS[i]}) ${option}`).join('')

/** Up to ten options are one piece, where `(A` is one token; more are a label token each, with their brackets apart. */
function encodeOptions(tokenizer: Tokenizer, labels: readonly number[], block: Block): number[] {
  if (isNarrow(block)) return tokenizer.encode(narrow(block))
  const open = tokenizer.encode('\n(')
  return block.options.flatMap((option, i) => [...open, labels[i]!, ...tokenizer.encode(`) ${option}`)])
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
