import { describe, expect, test } from 'vitest'
import {
  type CalibrationRecord,
  calibrate,
  calibrationReport,
  fitTemperature,
  nllAt,
} from '../../../src/apps/decider/calibrate.ts'
import { fixtureJson, fixtureTensors } from '../../fixtures.ts'
import { noise } from '../../check.ts'

const stored = fixtureTensors('decider/metrics.safetensors')
const options = stored.get('metrics.n_options').data
const logits = stored.get('metrics.logits')
const records: CalibrationRecord[] = Array.from(stored.get('metrics.gold').data, (gold, i) => {
  const start = i * logits.shape[1]!
  return { type: 'choice', logits: Array.from(logits.data.subarray(start, start + options[i]!)), gold }
})

/**
 * Records with as many right answers as their probabilities at temperature t say: of 1000 answers to one question the
 * best temperature is then t, whatever the fit finds.
 */
const soundAt = (t: number, type: 'choice' | 'noul' | 'score', spread: readonly number[]): CalibrationRecord[] => {
  const powers = spread.map((x) => Math.exp(x / t))
  const total = powers.reduce((a, b) => a + b)
  return powers.flatMap((power, gold) =>
    Array.from({ length: Math.round((1000 * power) / total) }, () => ({ type, logits: spread, gold })),
  )
}

describe('the NLL at a temperature', () => {
  const metrics = fixtureJson<{ metrics: Record<string, { nll: number }> }>('ops/inputs.json').metrics
  test.each([
    ['T1.0', 1],
    ['T1.3', 1.3],
  ])('is that of the stored probabilities at %s', (name, t) =>
    // those are floats: seven digits
    expect(nllAt(records, t)).toBeCloseTo(metrics[name]!.nll, 6),
  )
  test('of levels: P(yes) as shares', () => {
    const levels = [
      [2, 0],
      [0, 1],
      [1, 1],
    ] as const
    const yes = (t: number) => levels.map(([no, y]) => 1 / (1 + Math.exp((no - y) / t)))
    for (const t of [0.3, 1, 4]) {
      const fit = yes(t)
      expect(nllAt([{ type: 'score', levels, gold: 1 }], t)).toBeCloseTo(
        -Math.log(fit[1]! / fit.reduce((a, b) => a + b)),
        12,
      )
    }
  })
  test('of an impossible answer: 690', () => {
    expect(nllAt([{ type: 'choice', logits: [0, -Infinity], gold: 1 }], 1)).toBe(690)
    expect(nllAt([{ type: 'choice', logits: [1e6, 0], gold: 1 }], 1)).toBe(690)
    const none = {
      type: 'score',
      levels: [
        [0, -Infinity],
        [0, -Infinity],
      ],
      gold: 0,
    } as const
    expect(nllAt([none], 1)).toBe(690)
  })
})

describe('the fit', () => {
  test.each([0.3, 1, 1.164, 2.5, 9])('finds the temperature %f that the answers have', (t) => {
    const { temperature } = fitTemperature(soundAt(t, 'choice', [0, 0.7 * t, 1.9 * t]))
    expect(Math.abs(temperature / t - 1)).toBeLessThan(0.01) // answers come in whole numbers
  })
  test('no other temperature is better', () => {
    const { temperature, nll, nllAtOne } = fitTemperature(records)
    expect(nll).toBe(nllAt(records, temperature))
    expect(nllAtOne).toBe(nllAt(records, 1))
    expect(nll).toBeLessThan(nllAtOne)
    for (const factor of [0.5, 0.9, 0.999, 1.001, 1.1, 2])
      expect(nllAt(records, temperature * factor)).toBeGreaterThan(nll)
    for (const step of noise(200, 7)) expect(nllAt(records, Math.exp(3 * step))).toBeGreaterThanOrEqual(nll)
  })
  test('ends at the edges', () => {
    expect(fitTemperature([{ type: 'choice', logits: [5, 0], gold: 0 }]).temperature).toBeCloseTo(0.05, 3)
    expect(fitTemperature([{ type: 'choice', logits: [5, 0], gold: 1 }]).temperature).toBeCloseTo(20, 2)
  })
})

test('by type, where a type has enough, and for all together', () => {
  const noul = soundAt(2, 'noul', [0, 3])
  const few = soundAt(1, 'score', [0, 1]).slice(0, 49)
  const found = calibrate([...records, ...noul, ...few])
  expect(Object.keys(found.byType)).toEqual(['choice', 'noul'])
  expect(found.rows).toEqual({ choice: 500, noul: 1000, score: 49 })
  expect(found.byType.choice).toEqual(fitTemperature(records))
  expect(found.pooled).toEqual(fitTemperature([...records, ...noul, ...few]))
  expect(calibrate(few, 49).byType.score).toBeDefined()
  const report = calibrationReport(found)
  expect(Object.keys(report)).toEqual(['temperature_by_type', 'temperature', 'rows', 'nll'])
  expect(report.temperature_by_type.noul).toBeCloseTo(2, 2)
  expect(report.nll.noul).toEqual({
    'T=1': Number(found.byType.noul!.nllAtOne.toFixed(3)),
    fitted: Number(found.byType.noul!.nll.toFixed(3)),
  })
  expect(String(report.temperature)).toMatch(/^\d+\.\d{1,3}$/)
})
