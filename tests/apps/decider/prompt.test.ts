import { describe, expect, test } from 'vitest'
import { neutralizeNone } from '../../../src/apps/decider/neutral.ts'
import { countTokens, plainLayout } from '../../../src/apps/decider/prompt.ts'
import { labelTable } from '../../../src/apps/decider/labels.ts'
import type { Tokenizer } from '../../../src/text/tokenizer.ts'
import { type PromptCase, referenceCases, tokenizer } from './nano.ts'

const prompts: PromptCase[] = referenceCases.prompt_ids
const qwenLabels: number[] = referenceCases.label_ids_255

/** Knows the ids of a few texts and no others. */
const knowing = (table: Map<string, number[]>): Tokenizer => ({
  encode: (text) => table.get(text) ?? expect.fail(`unexpected piece ${JSON.stringify(text)}`),
  decode: () => '',
  size: 0,
  id: () => undefined,
})

/** The stored ids, cut into the pieces that the layout encodes one by one. */
function piecesOf({ state, question, options, ids, context_tokens: start }: PromptCase): Map<string, number[]> {
  const head = `\n\nQuestion: ${question}\nOptions:`
  const tail = '\nAnswer: ('
  const pieces = new Map([[`Context:\n${state}`, ids.slice(0, start)]])
  if (options.length <= 10) {
    const listed = options.map((option, i) => `\n(${'ABCDEFGHIJ'[i]}) ${option}`).join('')
    return pieces.set(head + listed + tail, ids.slice(start))
  }
  const opens = ids.flatMap((id, i) => (id === 198 && ids[i + 1] === 7 ? [i] : []))
  expect(opens).toHaveLength(options.length)
  pieces.set(head, ids.slice(start, opens[0])).set('\n(', [198, 7]).set(tail, ids.slice(-4))
  options.forEach((option, i) => {
    expect(ids[opens[i]! + 2]).toBe(qwenLabels[i])
    pieces.set(`) ${option}`, ids.slice(opens[i]! + 3, opens[i + 1] ?? -4))
  })
  return pieces
}

describe('prompts of the Qwen3.5 tokenizer that the original made', () => {
  test('narrow and wide ones', () => expect(prompts.map(({ options }) => options.length)).toEqual([2, 10, 11]))
  test.each(prompts)('$name', (stored) => {
    const layout = plainLayout(knowing(piecesOf(stored)), qwenLabels)
    const context = layout.context(stored.state, 1536)
    expect(context).toEqual({ ids: stored.ids.slice(0, stored.context_tokens), truncatedTokens: 0 })
    const encoded = layout.questions([stored])
    const row = encoded.about(context)
    expect(row).toEqual({ ids: stored.ids, slots: stored.slots })
    expect(encoded.tokens).toBe(stored.ids.length - stored.context_tokens)
    expect(countTokens([row])).toBe(stored.usage_input_tokens)
  })
})

describe('the label table', () => {
  const oneToken = (known: (text: string) => number[]): Tokenizer => ({ ...knowing(new Map()), encode: known })
  test('single tokens in alphabetical order, at most 255', () => {
    const ids = new Map<string, number>()
    const labels = labelTable(oneToken((text) => [ids.get(text) ?? ids.set(text, ids.size).size - 1]))
    expect(labels).toEqual(Array.from({ length: 255 }, (_, i) => i))
  })
  test('a tokenizer that splits a letter, or has one id for two, is refused', () => {
    expect(() => labelTable(oneToken((text) => (text === 'C' ? [1, 2] : [text.charCodeAt(0)])))).toThrow('labels:')
    expect(() => labelTable(oneToken(() => [7]))).toThrow('labels:')
  })
})

describe('the nano tokenizer', () => {
  const nano = plainLayout(tokenizer, labelTable(tokenizer))
  test('its pieces', () => {
    expect(tokenizer.encode('Context:\n')).toEqual([299, 263])
    expect(tokenizer.encode('\n(')).toEqual([198, 7])
    expect(tokenizer.encode(')')).toEqual([8])
  })
  test.each([1, 5, 16, 64])('a state is cut at %i tokens', (cap) => {
    const state = 'árvíztűrő tükörfúrógép 🙂\n\nline two '.repeat(8)
    const all = tokenizer.encode(`Context:\n${state}`)
    expect(nano.context(state, cap)).toEqual({ ids: all.slice(0, cap), truncatedTokens: all.length - cap })
  })
  test('several questions are numbered, and the question blocks are never cut', () => {
    const blocks = [
      { question: 'Which?', options: ['a', 'b'] },
      { question: 'Urgent?', options: ['no', 'yes'] },
    ]
    const row = nano.questions(blocks).about(nano.context('state', 2))
    expect(tokenizer.decode(row.ids)).toBe(
      'Context:\n\n\nQuestion 1: Which?\nOptions:\n(A) a\n(B) b\nAnswer 1: (\n\nQuestion 2: Urgent?\nOptions:\n(A) no\n(B) yes\nAnswer 2: (',
    )
    expect(row.slots.map((slot) => row.ids[slot])).toEqual([277, 277])
    expect(row.slots[1]).toBe(row.ids.length - 1)
  })
})

test('tokens that all rows share count once', () => {
  const count = (...rows: number[][]) => countTokens(rows.map((ids) => ({ ids, slots: [] })))
  expect(count([1, 2, 3, 4], [1, 2, 9], [1, 2, 3, 7, 8])).toBe(8)
  expect(count([1, 2, 3])).toBe(3)
  expect(count([1, 2], [1, 2])).toBe(2)
  expect(count([5, 1], [4, 1])).toBe(4)
  expect(count()).toBe(0)
})

test('"none of the above" becomes neutral and comes back, to the last of several', () => {
  expect(neutralizeNone(['a', ' None of the above, sorry', 'nonesuch'])).toEqual({
    options: ['a', 'not listed here', 'nonesuch'],
    names: ['a', ' None of the above, sorry', 'nonesuch'],
  })
  expect(neutralizeNone(['none', 'b', 'N/A'])).toEqual({
    options: ['not listed here', 'b', 'not listed here'],
    names: ['N/A', 'b', 'N/A'],
  })
})
