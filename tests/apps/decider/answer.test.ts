import { describe, expect, test } from 'vitest'
import { answerChoice, answerIsolated, answerScore, answerYesNo, softmax } from '../../../src/apps/decider/answer.ts'
import { fixtureTensors } from '../../fixtures.ts'
import { referenceCases } from './nano.ts'

interface Case {
  readonly type: 'choice' | 'noul' | 'score' | 'score_isolated'
  readonly names?: string[]
  readonly legend?: string[]
  readonly p?: number[]
  readonly logits?: number[]
  readonly T?: number
  readonly rows_no_yes?: [number, number][]
  readonly expect?: Record<string, unknown>
  readonly expect_partial?: Record<string, unknown>
}
const cases: Case[] = referenceCases.answer_assembly

const letters = (p: number[]) => p.map((_, i) => String.fromCharCode(97 + i))

function answer({ type, names, legend, p, logits, T, rows_no_yes: rows }: Case) {
  if (type === 'score_isolated')
    return answerIsolated(
      legend!,
      rows!.map(([, yes]) => yes),
    )
  const probabilities = p ?? softmax(logits!, T!)
  if (type === 'noul') return answerYesNo(probabilities)
  if (type === 'score') return answerScore(legend ?? letters(probabilities), probabilities)
  return answerChoice(names ?? letters(probabilities), probabilities)
}

describe('answers that the original made of these probabilities', () => {
  test('there are cases of every type', () => expect(new Set(cases.map(({ type }) => type)).size).toBe(4))
  test.each(cases)('$type $p $logits', (stored) => {
    const made = answer(stored)
    if (stored.expect)
      expect(JSON.stringify(made)).toBe(JSON.stringify(stored.expect)) // the order of keys too
    else expect(made).toMatchObject(stored.expect_partial!)
  })
})

describe('probabilities of the published models', () => {
  // the logits behind them, by which they fall short of the best: they come in half precision, in steps of 1/128,
  // and are divided by T as floats, where a quotient of 4 to 8 is rounded by up to 2^-22
  const steps = {
    'decider-0.8b': [
      [0, -630, -931],
      [-678, 0, -811],
      [-63, -527, 0],
    ],
    'decider-2b': [
      [0, -821, -812],
      [-964, 0, -986],
      [-90, -667, 0],
    ],
  }
  test.each(Object.entries(steps))('%s', (model, rows) => {
    const { T, reference } = referenceCases.mps_full_model[model]
    expect(reference).toHaveLength(3)
    rows.forEach((row, i) => {
      const p = softmax(
        row.map((step) => step / 128),
        T,
      )
      for (const [k, x] of p.entries()) expect(Math.abs(x - reference[i][k])).toBeLessThanOrEqual(2 ** -22)
    })
  })
})

test('certainty is 1 when sure and 0 when uniform', () => {
  expect(answerChoice(['a', 'b', 'c'], [1, 0, 0])).toMatchObject({ certainty: 1, confidence: 1 })
  expect(answerChoice(['a', 'b', 'c'], [1 / 3, 1 / 3, 1 / 3])).toMatchObject({
    choice: 'a',
    certainty: 0,
    confidence: 0,
  })
})

test('a score of levels asked one by one', () => {
  expect(answerIsolated(['calm', 'somewhat', 'angry'], [0.1, 0.5, 0.4])).toMatchObject({
    score: 1.3,
    level_fit: { 0: 0.1, 1: 0.5, 2: 0.4 },
    fit_mass: 1,
  })
})

test('levels of which none fits have no probability', () => {
  expect(answerIsolated(['a', 'b', 'c'], [0, 0, 0])).toEqual({
    type: 'score',
    score: 0,
    confidence: 0,
    x_p_max: 0,
    certainty: 1,
    legend: { 0: 'a', 1: 'b', 2: 'c' },
    probabilities: { 0: 0, 1: 0, 2: 0 },
    level_fit: { 0: 0, 1: 0, 2: 0 },
    fit_mass: 0,
  })
})

test('a choice below the threshold is null, one at it stays', () => {
  expect(answerChoice(['a', 'b'], [0.75, 0.25], 0.76).choice).toBeNull()
  expect(answerChoice(['a', 'b'], [0.75, 0.25], 0.75).choice).toBe('a')
})

test.each([0.5, 1, 1.03, 1.624])('softmax at temperature %f is PyTorch’s', (t) => {
  const stored = fixtureTensors('ops/ops.safetensors')
  const logits = stored.get('softmax.logits')
  const expected = stored.get(`softmax.T${Number.isInteger(t) ? t.toFixed(1) : t}`).data
  const width = logits.shape[1]!
  for (let row = 0; row < logits.shape[0]!; row++) {
    const p = softmax(logits.data.subarray(row * width, (row + 1) * width), t)
    for (const [k, x] of p.entries()) expect(Math.abs(x - expected[row * width + k]!)).toBeLessThanOrEqual(1e-6)
  }
})

test('softmax takes large logits', () => expect(softmax([1000, 1000], 0.5)).toEqual([0.5, 0.5]))
