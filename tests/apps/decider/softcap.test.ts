import { expect, test } from 'vitest'
import { labelTable } from '../../../src/apps/decider/labels.ts'
import { createReader } from '../../../src/apps/decider/reader.ts'
import { readSoftcap, softcap } from '../../../src/apps/decider/softcap.ts'
import { WeightsError } from '../../../src/errors.ts'
import { nanoConfig, tokenizer, uncalibrated } from './nano.ts'

test('a cap bends logits, none leaves them', () => {
  const logits = Float32Array.of(-100, -3, 0, 15, 1000)
  expect(softcap(logits)).toBe(logits)
  expect(Array.from(softcap(logits, 30))).toEqual(Array.from(logits, (x) => expect.closeTo(30 * Math.tanh(x / 30), 5)))
})

test('where a config has it', () => {
  expect(readSoftcap({ final_logit_softcapping: 30 })).toBe(30)
  expect(readSoftcap({ text_config: { final_logit_softcapping: 30.5 } })).toBe(30.5)
  for (const none of [{}, { text_config: {} }, { final_logit_softcapping: null }])
    expect(readSoftcap(none)).toBeUndefined()
  for (const cap of [0, -1, '30', true])
    expect(() => readSoftcap({ final_logit_softcapping: cap })).toThrow(WeightsError)
})

test('probabilities are those of bent logits over the temperature', () => {
  const config = { ...nanoConfig, temperatures: { ...uncalibrated, base: 2 } }
  const reader = createReader({ tokenizer, config, labels: labelTable(tokenizer), softcap: 30 })
  const sheet = reader.sheet([{ where: 'q', type: 'choice', block: { question: 'Q', options: ['a', 'b'] } }])
  const { p } = reader.read(sheet, [Float32Array.of(0, 60, 1e9)])[0]!
  expect(p[1]).toBeCloseTo(1 / (1 + Math.exp(-15 * Math.tanh(2))), 6)
})
