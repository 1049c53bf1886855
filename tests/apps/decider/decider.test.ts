import { describe, expect, expectTypeOf, test } from 'vitest'
import type { ScoreAnswer, YesNoAnswer } from '../../../src/apps/decider/answer.ts'
import type { DecideOptions } from '../../../src/apps/decider/api.ts'
import { choice, type Questions, score, yesNo } from '../../../src/apps/decider/question.ts'
import { DeviceError, InputError } from '../../../src/errors.ts'
import { fakeDecider, logitsFor, rowProbabilities, tokenizer, uncalibrated } from './nano.ts'

const questions = {
  team: choice('Which team?', ['billing', 'tech']),
  mood: score('How angry?', ['calm', 'somewhat', 'angry']),
  refund: yesNo('Refund?'),
}
const planned = { config: { temperatures: uncalibrated } }

describe('decide', () => {
  test('one row per question, a score level by level', async () => {
    const { decider, calls } = fakeDecider((_, __, row) => logitsFor(rowProbabilities[row]!), planned)
    const { answers, usage, model } = await decider.decide('My card was charged twice.', questions)
    expect(answers).toEqual({
      team: {
        type: 'choice',
        choice: 'tech',
        confidence: 0.6,
        x_p_max: 0.8,
        certainty: 0.2781,
        probabilities: { billing: 0.2, tech: 0.8 },
      },
      mood: expect.objectContaining({ score: 1.3, level_fit: { 0: 0.1, 1: 0.5, 2: 0.4 }, fit_mass: 1 }),
      refund: { type: 'noul', noul: 0.95 },
    })
    expect(model).toBe('decider-nano-1')
    const rows = calls[0]!.rows
    expect(rows).toHaveLength(5)
    const context = tokenizer.encode('Context:\nMy card was charged twice.')
    for (const row of rows) {
      expect(row.ids.slice(0, context.length)).toEqual(context)
      expect(row.slots).toEqual([row.ids.length - 1])
    }
    expect(usage.inputTokens).toBeLessThan(rows.reduce((sum, { ids }) => sum + ids.length, 0))
    expect(usage).toMatchObject({ outputTokens: 0, truncatedTokens: 0 })
  })

  test('a score in one row, where the question or the model says so', async () => {
    const logits = () => logitsFor([0.2, 0.3, 0.5])
    const own = fakeDecider(logits, planned)
    const { answers } = await own.decider.decide('x', { mood: score('How?', ['a', 'b', 'c'], { isolated: false }) })
    expect(answers.mood).toMatchObject({ score: 1.3, probabilities: { 0: 0.2, 1: 0.3, 2: 0.5 } })
    expect(answers.mood).not.toHaveProperty('level_fit')
    const listwise = fakeDecider(logits, { config: { temperatures: uncalibrated, isolatedLevels: false } })
    await listwise.decider.decide('x', { mood: questions.mood })
    expect([own, listwise].map(({ calls }) => calls[0]!.rows.length)).toEqual([1, 1])
  })

  test('every type has its temperature, levels that of a score; an override takes all', async () => {
    const temperatures = { base: 1, byType: { choice: 2, noul: 4, score: 8 } }
    const { decider } = fakeDecider(() => [0, 8, ...Array(97).fill(0)], { config: { temperatures } })
    const sigmoid = (x: number) => Number((1 / (1 + Math.exp(-x))).toFixed(4))
    const calibrated = (await decider.decide('x', questions)).answers
    expect([calibrated.team.x_p_max, calibrated.refund.noul]).toEqual([sigmoid(4), sigmoid(2)])
    expect(calibrated.mood.level_fit).toEqual({ 0: sigmoid(1), 1: sigmoid(1), 2: sigmoid(1) })
    const forced = (await decider.decide('x', questions, { temperature: 16 })).answers
    expect([forced.team.x_p_max, forced.refund.noul, forced.mood.level_fit?.[0]]).toEqual(Array(3).fill(sigmoid(0.5)))
    const packed = await decider.decidePacked('x', [{ question: 'Q', options: ['no', 'yes'] }])
    expect(packed.answers[0]!.confidence).toBeCloseTo(1 / (1 + Math.exp(-4)), 12)
    const typed = await decider.decidePacked('x', [{ question: 'Q', options: ['no', 'yes'], type: 'noul' }])
    expect(typed.answers[0]!.confidence).toBeCloseTo(1 / (1 + Math.exp(-2)), 12)
  })

  test('JSON states are shown as JSON', async () => {
    const { decider, calls } = fakeDecider(() => logitsFor([0.5, 0.5]))
    await decider.decide({ subject: 'Help', n: [1, 2.5] }, { refund: yesNo('Refund?') })
    expect(tokenizer.decode(calls[0]!.rows[0]!.ids)).toContain(
      'Context:\n{"subject": "Help", "n": [1, 2.5]}\n\nQuestion: Refund?',
    )
  })

  test('no questions: no answers and no run', async () => {
    const { decider, calls } = fakeDecider(() => [])
    const usage = { inputTokens: 0, outputTokens: 0, truncatedTokens: 0 }
    expect(await decider.decide('x', {})).toMatchObject({ answers: {}, usage })
    expect(await decider.decidePacked('x', [])).toMatchObject({ answers: [], usage })
    expect(await decider.decideBatch([])).toEqual([])
    expect(await decider.decideJson('x', {})).toMatchObject({ answers: {}, usage })
    expect(calls).toHaveLength(0)
  })

  test('long states are cut at the lower of both limits', async () => {
    const { decider, calls } = fakeDecider(() => logitsFor([0.5, 0.5]), { config: { maxStateTokens: 40 } })
    const state = 'word '.repeat(100)
    const whole = tokenizer.encode(`Context:\n${state}`).length
    const cut = async (maxStateTokens?: number) =>
      (await decider.decide(state, { q: yesNo('Q') }, maxStateTokens === undefined ? {} : { maxStateTokens })).usage
        .truncatedTokens
    expect([await cut(), await cut(20), await cut(60)]).toEqual([whole - 40, whole - 20, whole - 40])
    const block = calls[0]!.rows[0]!.ids.length - 40
    expect(calls.map(({ rows }) => rows[0]!.ids.length)).toEqual([40 + block, 20 + block, 40 + block])
  })

  test('abstaining', async () => {
    const { decider } = fakeDecider(() => logitsFor([0.7, 0.3]), planned)
    const { answers } = await decider.decide('x', { team: questions.team }, { abstainBelow: 0.71 })
    expect(answers.team).toMatchObject({ choice: null, x_p_max: 0.7 })
    const block = { question: 'Q', options: ['a', 'b'] }
    const packed = await decider.decidePacked('x', [block], { abstainBelow: 0.71 })
    expect(packed.answers[0]).toMatchObject({ choice: null, probs: { a: expect.closeTo(0.7, 6) } })
    expect((await decider.decidePacked('x', [block], { abstainBelow: 0.69 })).answers[0]!.choice).toBe('a')
  })

  test('a neutralised option is mapped back', async () => {
    const { decider, calls } = fakeDecider(() => logitsFor([0.1, 0.9]), {
      config: { neutralizeNone: true, temperatures: uncalibrated },
    })
    const options = ['red', 'None of the above']
    expect((await decider.decide('x', { c: choice('Colour?', options) })).answers.c.choice).toBe('None of the above')
    expect((await decider.decidePacked('x', [{ question: 'Colour?', options }])).answers[0]!.choice).toBe(
      'None of the above',
    )
    const json = await decider.decideJson('x', { 'Colour?': { type: 'choice', options } })
    expect(json.answers['Colour?']).toMatchObject({
      choice: 'None of the above',
      probabilities: { red: 0.1, 'None of the above': 0.9 },
    })
    expect(calls).toHaveLength(3)
    for (const { rows } of calls) expect(tokenizer.decode(rows[0]!.ids)).toContain('(B) not listed here\n')
  })
})

describe('decideBatch', () => {
  test('packs each context into a row and scores them together', async () => {
    const { decider, calls } = fakeDecider(
      (_, slot, row) => logitsFor(row === 0 ? [0.9, 0.1] : slot === 0 ? [0.2, 0.8] : [0.6, 0.4]),
      planned,
    )
    const a = { question: 'First?', options: ['a', 'b'] }
    const b = { question: 'Second?', options: ['c', 'd'] }
    const results = await decider.decideBatch([
      { context: 'one', questions: [a] },
      { context: 'none', questions: [] },
      { context: 'two', questions: [a, b] },
    ])
    expect(results.map(({ answers }) => answers.map((answer) => answer.choice))).toEqual([['a'], [], ['b', 'c']])
    expect(calls).toHaveLength(1)
    expect(results.map(({ usage }) => usage.inputTokens)).toEqual([
      calls[0]!.rows[0]!.ids.length,
      0,
      calls[0]!.rows[1]!.ids.length,
    ])
  })
})

describe('refusals', () => {
  const { decider, calls } = fakeDecider(() => logitsFor([0.5, 0.5]), { maxTokens: 60 })
  const many = Array.from({ length: 33 }, (_, i) => `o${i}`)
  test.each<[string, () => Promise<unknown>, string]>([
    [
      'more options than the model takes',
      () => decider.decide('x', { team: choice('Q', many) }),
      "'team': has 33 options, expected 2 to 32 (max_options 32, 99",
    ],
    ['no option', () => decider.decidePacked('x', [{ question: 'Q', options: [] }]), 'question 1: has 0 options'],
    [
      'one option',
      () => decider.decidePacked('x', [{ question: 'Q', options: ['a'] }]),
      'question 1: has 1 options, expected 2 to 32',
    ],
    [
      'an empty question',
      () => decider.decidePacked('x', [{ question: '', options: ['a', 'b'] }]),
      'question 1: has no text',
    ],
    [
      'an empty typed question',
      () => decider.decide('x', { q: choice('', ['a', 'b']) }),
      'question without instructions',
    ],
    ['a bad cap', () => decider.decide('x', {}, { maxStateTokens: 0 }), 'maxStateTokens: has 0'],
    ['a bad temperature', () => decider.decide('x', { q: yesNo('Q') }, { temperature: 0 }), 'temperature: has 0'],
    [
      'a temperature that is no number',
      () => decider.decide('x', { q: yesNo('Q') }, { temperature: Number.NaN }),
      'temperature: has NaN',
    ],
  ])('%s', async (_, call, message) => {
    await expect(call()).rejects.toThrow(InputError)
    await expect(call()).rejects.toThrow(message)
    expect(calls).toHaveLength(0)
  })
  test('a row over the limit', async () => {
    const long = decider.decide('word '.repeat(100), { q: yesNo('Q') })
    await expect(long).rejects.toMatchObject({
      code: 'too_long',
      message: expect.stringContaining('expected at most 60'),
    })
  })
  test('logits that are no numbers', async () => {
    const { decider } = fakeDecider(() => [Number.NaN, 1])
    await expect(decider.decide('x', { q: yesNo('Q') })).rejects.toThrow(DeviceError)
  })
})

test('an aborted signal stops before the run; a live one reaches the scorer', async () => {
  const { decider, calls } = fakeDecider(() => logitsFor([0.5, 0.5]))
  const { signal } = new AbortController()
  await decider.decide('x', { q: yesNo('Q') }, { signal })
  expect(calls[0]!.signal).toBe(signal)
  await expect(decider.decide('x', { q: yesNo('Q') }, { signal: AbortSignal.abort() })).rejects.toThrow('abort')
  expect(calls).toHaveLength(1)
})

test('dispose frees once, and no question is answered after it', async () => {
  const { decider, disposals } = fakeDecider(() => logitsFor([0.5, 0.5]))
  await decider.dispose()
  await decider[Symbol.asyncDispose]()
  expect(disposals()).toBe(1)
  await expect(decider.decide('x', { q: yesNo('Q') })).rejects.toMatchObject({ code: 'disposed' })
})

test('answers have the types of their questions', async () => {
  const { decider } = fakeDecider(() => logitsFor([0.5, 0.5]))
  const described = {
    team: choice('Q', { billing: 'charges', sales: null }),
    ...{ mood: questions.mood, refund: questions.refund },
  }
  const { answers } = await decider.decide('x', described)
  expectTypeOf(answers.team.choice).toEqualTypeOf<'billing' | 'sales'>()
  expectTypeOf(answers.team.probabilities).toEqualTypeOf<{ readonly billing: number; readonly sales: number }>()
  expectTypeOf(answers.mood).toEqualTypeOf<ScoreAnswer>()
  expectTypeOf(answers.refund).toEqualTypeOf<YesNoAnswer>()

  const listed = await decider.decide('x', { team: choice('Q', ['billing', 'sales']) }, { abstainBelow: 0.5 })
  expectTypeOf(listed.answers.team.choice).toEqualTypeOf<'billing' | 'sales' | null>()
  const bare = await decider.decide(
    'x',
    { team: { type: 'choice', instructions: 'Q', criteria: ['billing', 'sales'] } },
    { temperature: 1 },
  )
  expectTypeOf(bare.answers.team.choice).toEqualTypeOf<'billing' | 'sales'>()
  const mapped = await decider.decide('x', {
    team: choice(
      'Q',
      new Map<'a' | 'b', string>([
        ['a', ''],
        ['b', ''],
      ]),
    ),
  })
  expectTypeOf(mapped.answers.team.choice).toEqualTypeOf<'a' | 'b'>()

  const wide: Questions = { refund: yesNo('Q') }
  const options: DecideOptions = {}
  const unknown = await decider.decide('x', wide, options)
  const answer = unknown.answers.refund!
  if (answer.type === 'choice') expectTypeOf(answer.choice).toEqualTypeOf<string | null>()
  expect(answer.type).toBe('noul')
  // @ts-expect-error there is no such question
  expect(answers.nothing).toBeUndefined()
})

test('what is no request is refused by type, and the next one is answered', async () => {
  const { decider } = fakeDecider(() => logitsFor([0.7, 0.3]))
  const cyclic: unknown[] = []
  cyclic.push(cyclic)
  const wrong: (() => Promise<unknown>)[] = [
    () => decider.decide('x', undefined as never),
    () => decider.decide('x', { q: null as never }),
    () => decider.decide(cyclic as never, { q: yesNo('A?') }),
    () => decider.decide('x', { q: yesNo('A?') }, { abstainBelow: Number.NaN }),
    () => decider.decidePacked(null as never, [{ question: 'A?', options: ['a', 'b'] }]),
    () => decider.decidePacked('x', [{ question: 'A?' } as never]),
    () => decider.decidePacked('x', [{ question: 'A?', options: ['a', 7 as never] }]),
    () => decider.decidePacked('x', [{ question: 'A?', options: ['a', 'b'], type: 'bool' as never }]),
    () => decider.decidePacked('x', undefined as never),
  ]
  for (const ask of wrong) await expect(ask()).rejects.toMatchObject({ name: 'InputError' })
  expect((await decider.decide('x', { q: yesNo('A?') })).answers.q.noul).toBeGreaterThan(0)
})
