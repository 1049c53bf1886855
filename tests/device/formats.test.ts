import { expect, test } from 'vitest'
import { allFinite } from '../../src/device/formats.ts'

test('values are all finite, or one is not, wherever it is', () => {
  expect(allFinite(new Float32Array())).toBe(true)
  expect(allFinite(Float32Array.of(0, -0, 3.4e38, -3.4e38, 1e-45))).toBe(true)
  for (const wrong of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])
    for (const at of [0, 2, 4]) {
      const values = new Float32Array(5).fill(1)
      values[at] = wrong
      expect(allFinite(values), `${wrong} at ${at}`).toBe(false)
    }
})
