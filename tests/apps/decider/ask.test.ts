import { describe, expect, test } from 'vitest'
import { ask, readQuestions, rowsOf } from '../../../src/apps/decider/ask.ts'
import { Float } from '../../../src/apps/decider/json.ts'
import { choice, type Question, score, yesNo } from '../../../src/apps/decider/question.ts'
import { InputError } from '../../../src/errors.ts'

const options = (question: Question) => rowsOf(ask('q', question), false)[0]!.options

describe('options as the model reads them', () => {
  test('a choice, bare or described', () => {
    expect(options(choice('Q', ['a', 'b']))).toEqual(['a', 'b'])
    const described = {
      billing: 'charges',
      returns: { what: 'refunds', not_for: 'delivery' },
      other: null,
      none: '',
      n: 0,
      f: false,
    }
    expect(options(choice('Q', described))).toEqual([
      'billing: charges',
      'returns: {"what": "refunds", "not_for": "delivery"}',
      'other',
      'none',
      'n: 0',
      'f: false',
    ])
    expect(
      options(
        choice(
          'Q',
          new Map([
            ['10', 'ten'],
            ['9', 'nine'],
          ]),
        ),
      ),
    ).toEqual(['10: ten', '9: nine'])
  })
  test('a list takes its items as text and each once', () => {
    expect(options(choice('Q', ['a', 1, 1.5, true, null, 'a'] as unknown as string[]))).toEqual([
      'a',
      '1',
      '1.5',
      'True',
      'None',
    ])
    const odd = [new Float(1), ["it's", { a: null }], 10n ** 20n] as unknown as string[]
    expect(options(choice('Q', odd))).toEqual(['1.0', `["it's", {'a': None}]`, '100000000000000000000'])
  })
  test('yes or no', () => {
    expect(options(yesNo('Q'))).toEqual(['no', 'yes'])
    expect(options(yesNo('Q', { true: 'money back', false: 'anything else' }))).toEqual([
      'no: anything else',
      'yes: money back',
    ])
    expect(rowsOf(ask('q', yesNo('', { true: 'spam' })), false)).toEqual([
      { question: 'Which answer fits the context?', options: ['no', 'yes: spam'] },
    ])
  })
  test('a score: a list is an unordered map', () => {
    const expected = ['0: calm', '1: cross', '2: angry']
    expect(options(score('Q', ['calm', 'cross', 'angry']))).toEqual(expected)
    expect(options(score('Q', { '10': 'angry', '-1': 'calm', '2.5': 'cross' }))).toEqual(expected)
  })
  test('instructions may be JSON', () => {
    expect(ask('q', yesNo({ task: ['find', 1] })).question).toBe('{"task": ["find", 1]}')
  })
})

describe('a score asked level by level', () => {
  test('one yes-or-no row per level, without the number in front of it', () => {
    const asked = ask('mood', score('Angry?', ['0: calm', '2: somewhat', '-1 : negative', '٣:x', 'a: b']))
    const rows = rowsOf(asked, true)
    expect(rows.map(({ question }) => question.split('\n')[1])).toEqual(
      ['calm', 'somewhat', 'negative', 'x', 'a: b'].map((level) => `Proposed answer: ${level}`),
    )
    expect(rows[0]).toEqual({
      question: 'Angry?\nProposed answer: calm\nDoes the proposed answer fit?',
      options: ['no', 'yes'],
    })
  })
  test('unless the question or the model says otherwise', () => {
    expect(rowsOf(ask('q', score('Q', ['calm', 'cross'], { isolated: false })), true)).toHaveLength(1)
    expect(rowsOf(ask('q', score('Q', ['calm', 'cross'], { isolated: true })), false)).toHaveLength(1)
  })
})

describe('questions from JSON', () => {
  test('aliases and defaults', () => {
    const questions = readQuestions({
      team: { question: 'Which?', options: ['a', 'b'] },
      spam: { type: 'bool', instructions: 'Spam?' },
      mood: { type: 'score', question: 'Mood?', levels: ['low', 'high'], isolated: false },
      kept: { type: 'choice', instructions: 'Which?', criteria: { a: 'x', b: null } },
    })
    expect(questions).toEqual({
      team: choice('Which?', ['a', 'b']),
      spam: { ...yesNo('Spam?'), criteria: null },
      mood: score('Mood?', ['low', 'high'], { isolated: false }),
      kept: choice('Which?', { a: 'x', b: null }),
    })
  })

  const map = 'choice criteria: a map of 2..255 options'
  const levels = 'score criteria: an ordered list of 2..10 level descriptions'
  const described = 'noul criteria: a map of optional true/false descriptions'
  const many = (n: number) => Array.from({ length: n }, (_, i) => `o${i}`)
  test.each([
    [{ options: ['a', 'b'] }, 'question without instructions'],
    [{ question: '', options: ['a', 'b'] }, 'question without instructions'],
    [{ type: 'score', criteria: ['a', 'b'] }, 'question without instructions'],
    [{ question: 'Q' }, map],
    [{ question: 'Q', options: [] }, map],
    [{ question: 'Q', options: ['a'] }, map],
    [{ question: 'Q', options: ['a', 'a'] }, map],
    [{ question: 'Q', options: many(256) }, map],
    [{ question: 'Q', options: 'a,b' }, map],
    [{ type: 'score', question: 'Q', levels: ['a'] }, levels],
    [{ type: 'score', question: 'Q', levels: many(20) }, levels],
    [{ type: 'score', question: 'Q', levels: { low: 'a', high: 'b' } }, levels],
    [{ type: 'noul', question: 'Q', criteria: ['bad'] }, described],
    [{ type: 'noul', question: 'Q', criteria: [] }, described],
    [{ type: 'noul', question: 'Q', criteria: 'bad' }, described],
    [{ type: 'noul', question: 'Q', criteria: false }, described],
    [{ type: 'noul' }, 'noul question without instructions: criteria must describe true or false'],
    [
      { type: 'noul', criteria: { true: '' } },
      'noul question without instructions: criteria must describe true or false',
    ],
    [{ type: 'nope', question: 'Q' }, "unknown question type 'nope'"],
    [{ type: 7, question: 'Q' }, 'unknown question type 7'],
  ])('%j is refused', (spec, detail) => {
    const read = () => readQuestions({ team: spec })
    expect(read).toThrow(InputError)
    expect(read).toThrow(`question 'team': ${detail}`)
    expect(read).toThrow(expect.objectContaining({ cause: detail }))
  })
  test.each([null, [], 'x', { team: 'x' }])('%j holds no questions', (json) =>
    expect(() => readQuestions(json)).toThrow(InputError),
  )
  test('255 options can be asked', () =>
    expect(Object.keys(readQuestions({ q: { question: 'Q', options: many(255) } }))).toEqual(['q']))
})
