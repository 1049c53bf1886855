import { describe, expect, test } from 'vitest'
import { chatFrame } from '../../../src/apps/decider/chat_template.ts'
import { labelTable } from '../../../src/apps/decider/labels.ts'
import {
  type Block,
  chatLayout,
  type Layout,
  plainLayout,
  schemaFirstLayout,
} from '../../../src/apps/decider/prompt.ts'
import { choice, score, yesNo } from '../../../src/apps/decider/question.ts'
import { createReader } from '../../../src/apps/decider/reader.ts'
import { InputError, WeightsError } from '../../../src/errors.ts'
import { fakeDecider, logitsFor, nanoConfig, tokenizer, uncalibrated } from './nano.ts'

const labels = labelTable(tokenizer)
const which: Block = { question: 'Which?', options: ['a', 'b'] }
const urgent: Block = { question: 'Urgent?', options: ['no', 'yes'] }
const wide: Block = { question: 'Word?', options: Array.from({ length: 60 }, (_, i) => `w${i}`) }
const rowOf = (layout: Layout, state: string, blocks: Block[], cap = 1536) =>
  layout.questions(blocks).about(layout.context(state, cap))

/** Shaped like the published one of Qwen3.5: thinking is on unless it is told otherwise. */
const TEMPLATE = `{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- else %}{{- '<think>\\n' }}{%- endif %}{%- endif %}`
const HEAD = '<|im_start|>user\n'
const TAIL = '<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n'

describe('schema-first rows', () => {
  const layout = schemaFirstLayout(tokenizer, labels)
  test('the questions, the state, the answers', () => {
    const one = rowOf(layout, 'state', [which])
    expect(tokenizer.decode(one.ids)).toBe('Question: Which?\nOptions:\n(A) a\n(B) b\n\nContext:\nstate\n\nAnswer: (')
    expect(one.slots).toEqual([one.ids.length - 1])
    const two = rowOf(layout, 'state', [which, urgent])
    expect(tokenizer.decode(two.ids)).toBe(
      'Question 1: Which?\nOptions:\n(A) a\n(B) b\n\nQuestion 2: Urgent?\nOptions:\n(A) no\n(B) yes' +
        '\n\nContext:\nstate\n\nAnswer 1: (\nAnswer 2: (',
    )
    expect(two.slots.map((slot) => two.ids[slot])).toEqual([277, 277])
  })
  test('begin alike whatever the state, and say how far', () => {
    const [a, b] = ['one', 'quite another'].map((state) => rowOf(layout, state, [which, wide]))
    expect(a!.prefix).toBe(b!.prefix)
    expect(a!.ids.slice(0, a!.prefix)).toEqual(b!.ids.slice(0, b!.prefix))
    expect(tokenizer.decode(a!.ids.slice(a!.prefix))).toBe('\n\nContext:\none\n\nAnswer 1: (\nAnswer 2: (')
  })
  test('the head and the options are pieces of their own', () => {
    const { ids } = rowOf(layout, 'x', [which])
    const pieces = ['Question: Which?\nOptions:', '\n(A) a\n(B) b', '\n\nContext:\n', 'x', '\n\nAnswer: (']
    expect(ids).toEqual(pieces.flatMap((piece) => tokenizer.encode(piece)))
  })
  test.each([1, 5, 64])('a state is cut at %i tokens, which do not count those of Context', (cap) => {
    const state = 'árvíztűrő tükörfúrógép 🙂\n\nline two '.repeat(8)
    const all = tokenizer.encode(state)
    expect(layout.context(state, cap)).toEqual({
      ids: [...tokenizer.encode('\n\nContext:\n'), ...all.slice(0, cap)],
      truncatedTokens: all.length - cap,
    })
  })
})

describe('wide questions', () => {
  test.each([plainLayout, schemaFirstLayout])('have one label token per option', (make) => {
    const { ids } = rowOf(make(tokenizer, labels), 'x', [wide])
    const opened = ids.flatMap((id, i) => (id === 198 && ids[i + 1] === 7 ? [ids[i + 2]] : []))
    expect(opened).toEqual(labels.slice(0, 60))
  })
})

describe('chat rows', () => {
  test('the frame of a template, which is told not to think', async () => {
    expect(await chatFrame(TEMPLATE, tokenizer)).toEqual({ head: HEAD, tail: TAIL })
  })
  test.each([
    ['<think>\n', '<think>\n</think>\n\n'],
    ['<think>', '<think></think>\n\n'],
    ['<|channel>thought\n', '<|channel>thought\n<channel|>'],
    ['', ''],
  ])('a thought left open is closed: %j', async (open, closed) => {
    const template = `{{ bos_token }}{{ messages[0].content }}<|im_end|>${open.replace('\n', "{{ '\\n' }}")}`
    const { head, tail } = await chatFrame(template, tokenizer, { bos_token: '<s>' })
    expect(head).toBe('<s>')
    expect(tail).toBe(`<|im_end|>${closed}`)
  })
  test('the state and the questions are the user’s, the answers come after', async () => {
    const layout = chatLayout(tokenizer, labels, await chatFrame(TEMPLATE, tokenizer))
    const packed = rowOf(layout, 'state', [which, urgent])
    expect(tokenizer.decode(packed.ids)).toBe(
      `${HEAD}Context:\nstate\n\nQuestion 1: Which?\nOptions:\n(A) a\n(B) b\n\nQuestion 2: Urgent?\nOptions:\n(A) no\n(B) yes${TAIL}Answer 1: (\nAnswer 2: (`,
    )
    expect(packed.slots.map((slot) => packed.ids[slot])).toEqual([277, 277])
    const pieces = [HEAD, 'Context:\nstate', '\n\nQuestion: Which?\nOptions:', '\n(A) a\n(B) b', TAIL, 'Answer: (']
    expect(rowOf(layout, 'state', [which]).ids).toEqual(pieces.flatMap((piece) => tokenizer.encode(piece)))
  })
  test.each([32768, 1536, 64, 5])('the cap of %i is the state’s and Context’s alone', async (cap) => {
    const layout = chatLayout(tokenizer, labels, { head: HEAD, tail: TAIL })
    const state = 'word '.repeat(2000)
    const all = tokenizer.encode(`Context:\n${state}`)
    const { ids, truncatedTokens } = layout.context(state, cap)
    expect(ids).toEqual([...tokenizer.encode(HEAD), ...all.slice(0, cap)])
    expect(truncatedTokens).toBe(Math.max(0, all.length - cap))
  })
  test.each([
    ['{% for', 'does not render'],
    ['hello', "shows the user's text 0 times"],
    ['{{ messages[0].content }}{{ messages[0].content }}', "shows the user's text 2 times"],
  ])('the template %j is refused', async (template, message) => {
    await expect(chatFrame(template, tokenizer)).rejects.toThrow(WeightsError)
    await expect(chatFrame(template, tokenizer)).rejects.toThrow(message)
  })
  test('a tokenizer that makes one token of the bracket and the letter is refused', async () => {
    const merging = { ...tokenizer, encode: (text: string) => tokenizer.encode(text.replace(/\(([A-Z])$/, '[$1')) }
    await expect(chatFrame(TEMPLATE, merging)).rejects.toThrow("'A' is no token of its own")
    const joining = { ...tokenizer, encode: (text: string) => tokenizer.encode(text.replace('\n\nAnswer', 'answer')) }
    await expect(chatFrame(TEMPLATE, joining)).rejects.toThrow('merges with the answer')
  })
})

describe('rows with a shared state are those made one by one', () => {
  const states = [
    'short',
    '',
    'árvíztűrő tükörfúrógép 🙂\n\nline two',
    '{"a": [1, 2.5, "<|im_end|>"]}',
    'word '.repeat(500),
  ]
  const many = (n: number): Block => ({ question: 'One?', options: Array.from({ length: n }, (_, i) => `o ${i}`) })
  const rows: Block[][] = [
    ...Array.from({ length: 12 }, (_, i) => [{ question: `Question ${i}?`, options: ['yes', 'no'] }]),
    [which, urgent, which, many(3), urgent],
    [many(40)],
  ]
  test.each(states.map((state) => [state.slice(0, 20), state]))('%j', (_, state) => {
    const layout = plainLayout(tokenizer, labels)
    const context = layout.context(state, 1536)
    for (const blocks of rows) expect(layout.questions(blocks).about(context)).toEqual(rowOf(layout, state, blocks))
  })
  test('255 options, with labels for all of them', () => {
    const table = Array.from({ length: 255 }, (_, i) => i)
    const { ids, slots } = rowOf(plainLayout(tokenizer, table), 'x', [many(255)])
    expect(ids.filter((id, i) => id === 7 && ids[i - 1] === 198)).toHaveLength(255)
    expect(slots).toEqual([ids.length - 1])
  })
  test.each([16, 64, 1024])('a state is cut at %i ids', (cap) => {
    expect(plainLayout(tokenizer, labels).context('word '.repeat(2000), cap).ids).toHaveLength(cap)
  })
})

describe('decide in other layouts', () => {
  const questions = { team: choice('Which?', ['a', 'b']), mood: score('How?', ['low', 'high']), spam: yesNo('Spam?') }
  const schemaFirst = { byType: { choice: 2 } as const, base: 4 }
  const temperatures = { ...uncalibrated, schemaFirst }
  const p = [0.25, 0.75]

  test('schema-first, with its temperatures', async () => {
    const { decider, calls } = fakeDecider(() => logitsFor(p), { config: { temperatures } })
    const { answers } = await decider.decide('state', questions, { layout: 'schema_first' })
    const softened = (t: number) => Number((1 / (1 + 3 ** (-1 / t))).toFixed(4))
    expect([answers.team.x_p_max, answers.spam.noul, answers.mood.level_fit?.[0]]).toEqual([2, 4, 4].map(softened))
    const [{ rows }] = calls as [(typeof calls)[number]]
    expect(rows).toHaveLength(4)
    for (const { ids, prefix } of rows) expect(tokenizer.decode(ids.slice(prefix))).toMatch(/^\n\nContext:\nstate/)
  })
  test('a model whose config says so is asked schema-first, unless the call says otherwise', async () => {
    const { decider, calls } = fakeDecider(() => logitsFor(p), { config: { temperatures, schemaFirst: true } })
    await decider.decide('state', { spam: yesNo('Spam?') })
    await decider.decide('state', { spam: yesNo('Spam?') }, { layout: 'state_first' })
    expect(calls.map(({ rows }) => rows[0]!.prefix !== undefined)).toEqual([true, false])
  })
  test('a schema asks many states in one call', async () => {
    const { decider, calls } = fakeDecider((_, __, row) => logitsFor([p, [0.9, 0.1]][row]!), {
      config: { temperatures: uncalibrated },
    })
    const schema = decider.schema({ spam: yesNo('Spam?') })
    const answered = await schema.decideBatch(['one', { n: 2 }])
    expect(answered.map(({ answers }) => answers.spam.noul)).toEqual([0.75, 0.1])
    expect(calls).toHaveLength(1)
    expect(tokenizer.decode(calls[0]!.rows[1]!.ids)).toContain('Context:\n{"n": 2}\n\nAnswer: (')
    expect((await schema.decide('three')).answers.spam.noul).toBe(0.75)
    await decider.schema({ spam: yesNo('Spam?') }, { layout: 'state_first' }).decide('four')
    expect(tokenizer.decode(calls[2]!.rows[0]!.ids)).toMatch(/^Context:\nfour\n\nQuestion/)
  })
  test('packed: one row for all questions, and scores listwise', async () => {
    const { decider, calls } = fakeDecider((_, slot) => logitsFor([p, [0.9, 0.1], [0.2, 0.8]][slot]!), {
      config: { temperatures: uncalibrated },
    })
    const { answers, usage } = await decider.decide('state', questions, { independent: false })
    expect([answers.team.choice, answers.mood.score, answers.spam.noul]).toEqual(['b', 0.1, 0.8])
    expect(answers.mood).not.toHaveProperty('fit_mass')
    expect(calls[0]!.rows).toHaveLength(1)
    expect(usage.inputTokens).toBe(calls[0]!.rows[0]!.ids.length)
    expect(tokenizer.decode(calls[0]!.rows[0]!.ids)).toContain('Question 2: How?\nOptions:\n(A) 0: low\n(B) 1: high')
  })
  test('isolated levels as the call has them', async () => {
    const { decider, calls } = fakeDecider(() => logitsFor(p))
    for (const isolated of [true, false]) await decider.decide('x', { mood: questions.mood }, { isolated })
    expect(calls.map(({ rows }) => rows.length)).toEqual([2, 1])
  })
  test('what is no layout is refused, and schema-first by a chat model', async () => {
    const { decider } = fakeDecider(() => [])
    await expect(decider.decide('x', questions, { layout: 'xml' as never })).rejects.toThrow('layout: has xml')
    await expect(decider.decide('x', questions, { independent: 1 as never })).rejects.toThrow('independent: has 1')
    const chat = createReader({ tokenizer, config: nanoConfig, chat: { head: HEAD, tail: TAIL } })
    const asked = [{ where: 'q', type: 'choice', block: which }] as const
    expect(() => chat.sheet(asked, { order: 'schema_first' })).toThrow(InputError)
    expect(tokenizer.decode(chat.sheet(asked).about(chat.context('s', 9, 'state_first')).ids)).toMatch(
      /^<\|im_start\|>/,
    )
  })
})
