import { describe, expect, test } from 'vitest'
import { binsOf, type Judged, type Metrics, meanMetrics, metricsOf } from '../../../src/apps/decider/metrics.ts'
import { fixtureJson, fixtureTensors } from '../../fixtures.ts'

const stored = fixtureTensors('decider/metrics.safetensors')
const expected = fixtureJson<{ metrics: Record<string, Metrics> }>('ops/inputs.json').metrics

/** 500 rows of 8 columns, of which a question has its first few. */
function judged(name: string): Judged[] {
  const { data, shape } = stored.get(`metrics.${name}.probs`)
  const gold = stored.get('metrics.gold').data
  const options = stored.get('metrics.n_options').data
  return Array.from(gold, (right, i) => {
    const start = i * shape[1]!
    return { p: Array.from(data.subarray(start, start + options[i]!)), gold: right }
  })
}

describe('the metrics that the original made of stored probabilities', () => {
  test('there are two temperatures', () => expect(Object.keys(expected)).toEqual(['T1.0', 'T1.3']))
  test.each(Object.entries(expected))('%s', (name, metrics) => {
    const found = metricsOf(judged(name))
    const keys = Object.keys(found) as (keyof Metrics)[]
    expect(keys).toHaveLength(10)
    for (const key of keys) expect(Math.abs(found[key] - metrics[key]), key).toBeLessThanOrEqual(1e-9)
  })
  test('the bins of a reliability diagram add up to them', () => {
    const bins = binsOf(judged('T1.0'))
    const total = (of: (bin: (typeof bins)[number]) => number) => bins.reduce((sum, bin) => sum + of(bin), 0)
    expect(total(({ n }) => n)).toBe(500)
    expect(total(({ n, accuracy }) => (n * accuracy) / 500)).toBeCloseTo(expected['T1.0']!.acc, 12)
    expect(total(({ n, meanConfidence }) => (n * meanConfidence) / 500)).toBeCloseTo(expected['T1.0']!.mean_conf, 12)
  })
})

test('by hand: two right, one wrong', () => {
  const questions = [
    { p: [0.9, 0.1], gold: 0 },
    { p: [0.4, 0.6], gold: 0 },
    { p: [0.1, 0.7, 0.2], gold: 1 },
  ]
  const found = metricsOf(questions)
  expect(found.acc).toBeCloseTo(2 / 3, 12)
  expect(found.nll).toBeCloseTo(-(Math.log(0.9) + Math.log(0.4) + Math.log(0.7)) / 3, 12)
  expect(found.brier).toBeCloseTo((0.02 + 0.72 + 0.14) / 3, 12)
  expect(found.ece).toBeCloseTo((0.1 + 0.6 + 0.3) / 3, 12)
  expect(found.aurc).toBeCloseTo(1 / 9, 12) // wrong at the third rank alone
  expect([found.acc_at_80, found.acc_at_50]).toEqual([1, 1]) // of 2 and of 2: halves go to the even count
  expect(found.chance).toBeCloseTo((1 / 2 + 1 / 2 + 1 / 3) / 3, 12)
})

test('a bin holds its upper edge and not its lower one', () => {
  const at = (confidence: number) => ({ p: [confidence, 1 - confidence], gold: 0 })
  expect(binsOf([at(0.6)]).map(({ high }) => high)).toEqual([9 * (1 / 15)])
  expect(binsOf([at(0.6000001)]).map(({ low }) => low)).toEqual([9 * (1 / 15)])
  expect(binsOf([at(1)]).map(({ high }) => high)).toEqual([1])
})

test('an impossible answer that was right costs what 1e-12 costs', () =>
  expect(metricsOf([{ p: [1, 0], gold: 1 }]).nll).toBeCloseTo(-Math.log(1e-12), 9))

test('half of five questions are two, at least one of one', () => {
  const right = { p: [0.9, 0.1], gold: 0 }
  const wrong = { p: [0.4, 0.6], gold: 0 }
  expect(metricsOf([right, { ...right, p: [0.8, 0.2] }, wrong, wrong, wrong]).acc_at_50).toBe(1)
  expect(metricsOf([wrong]).acc_at_50).toBe(0)
})

test('tasks count alike, whatever their size', () => {
  const one = metricsOf([{ p: [1, 0], gold: 0 }])
  const two = metricsOf([
    { p: [0, 1], gold: 0 },
    { p: [0, 1], gold: 0 },
  ])
  expect(meanMetrics([one, two])).toMatchObject({ tasks: 2, acc: 0.5, chance: 0.5, brier: 1 })
})
