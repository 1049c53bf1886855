import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { labelTable } from '../../../src/apps/decider/labels.ts'
import { chatLayout, countTokens, plainLayout } from '../../../src/apps/decider/prompt.ts'
import { createTokenizer } from '../../../src/text/tokenizer.ts'
import { type PromptCase, referenceCases } from './nano.ts'

/** The tokenizer.json of a Qwen3.5 checkpoint, which is too big to come with the tests. */
const path = process.env.PRONOUNCE_QWEN_TOKENIZER
const prompts: PromptCase[] = referenceCases.prompt_ids
const pieces: Record<string, number[] | number> = referenceCases.pieces

describe.skipIf(path === undefined)('the tokenizer of Qwen3.5 (PRONOUNCE_QWEN_TOKENIZER)', () => {
  const tokenizer = path === undefined ? undefined! : createTokenizer(JSON.parse(readFileSync(path, 'utf8')))

  test('the label table', () => expect(labelTable(tokenizer)).toEqual(referenceCases.label_ids_255))
  test.each([
    ['Context:\n', 'Context:\\n'],
    ['\n\nQuestion:', '\\n\\nQuestion:'],
    ['\nOptions:', '\\nOptions:'],
    ['\nAnswer: (', '\\nAnswer: ('],
    ['\n(', '\\n( (wide open)'],
    [')', ') (wide close)'],
  ])('%j', (text, name) => expect(tokenizer.encode(text)).toEqual(pieces[name]))
  test.each([...'ABCDEFGHIJ'].map((letter, i) => [letter, i] as const))('(%s of a narrow question', (letter, i) =>
    expect(tokenizer.encode(`\n(${letter}) x`)[1]).toBe((pieces['narrow (A..(J as one token'] as number[])[i]),
  )
  test.each(prompts)('the prompt $name', ({ state, options, question, ids, slots, usage_input_tokens: tokens }) => {
    const layout = plainLayout(tokenizer, labelTable(tokenizer))
    const row = layout.questions([{ question, options }]).about(layout.context(state, 1536))
    expect(row).toEqual({ ids, slots })
    expect(countTokens([row])).toBe(tokens)
    expect(row.ids[slots[0]!]).toBe(pieces["slot token ' ('"])
  })
  test('the frame of a chat: 3 tokens and 9', () => {
    const frame = {
      head: '<|im_start|>user\n',
      tail: '<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n',
    }
    expect([tokenizer.encode(frame.head).length, tokenizer.encode(frame.tail).length]).toEqual([3, 9])
    const layout = chatLayout(tokenizer, labelTable(tokenizer), frame)
    const row = layout.questions([{ question: 'Which?', options: ['a', 'b'] }]).about(layout.context('state', 64))
    expect(tokenizer.decode(row.ids)).toBe(
      `${frame.head}Context:\nstate\n\nQuestion: Which?\nOptions:\n(A) a\n(B) b${frame.tail}Answer: (`,
    )
  })
})

test('the stored pieces are those of the stored prompts', () => {
  const head = [pieces['Context:\\n'], pieces['\\n\\nQuestion:'], pieces['\\nOptions:'], pieces['\\nAnswer: (']]
  for (const { ids } of prompts) for (const piece of head) expect(ids.join()).toContain((piece as number[]).join())
  const wide = prompts.find(({ options }) => options.length > 10)!
  expect(wide.ids.join()).toContain(
    [
      ...(pieces['\\n( (wide open)'] as number[]),
      referenceCases.label_ids_255[10],
      ...(pieces[') (wide close)'] as number[]),
    ].join(),
  )
  const narrow = prompts.find(({ options }) => options.length === 10)!
  expect(narrow.ids.filter((id) => (pieces['narrow (A..(J as one token'] as number[]).includes(id))).toEqual(
    pieces['narrow (A..(J as one token'],
  )
})
