import { expect, test } from 'vitest'
import { upstreamNumbers } from '../../src/text/upstream_numbers.ts'
import vectors from './number_vectors.json' with { type: 'json' }

test('equals the 289 vectors of Zonos’ own normaliser', () => {
  expect(vectors).toHaveLength(289)
  expect(vectors.map(([text]) => [text, upstreamNumbers(text!)])).toEqual(vectors)
})

test.each([
  ['The apple costs $3.50 in 1999.', 'The apple costs three dollars, fifty cents in nineteen ninety-nine.'],
  ['no number', 'no number'],
  [`1${'0'.repeat(35)}`, 'one hundred decillion'],
  ['1'.repeat(37), Array(37).fill('one').join(' ')],
])('%s', (text, want) => {
  expect(upstreamNumbers(text)).toBe(want)
})
