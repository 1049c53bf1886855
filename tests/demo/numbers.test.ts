import { expect, test } from 'vitest'
import { meter } from '../../demo/models/meter.ts'
import { peaks } from '../../demo/speak/peaks.ts'
import { bytes, duration, ms, percent, seconds } from '../../demo/ui/format.ts'

test('bytes a second, of one transfer and of its last seconds', () => {
  let now = 0
  const rate = meter(() => now)
  const at = (ms: number, loadedBytes: number, what = 'a') => {
    now = ms
    return rate({ what, loadedBytes, totalBytes: 1e9 })
  }
  expect(at(0, 5e6)).toBe(0) // what was there already counts for nothing
  expect(at(1000, 7e6)).toBe(2e6)
  expect(at(3000, 7e6)).toBeCloseTo(2e6 / 3)
  expect(at(5500, 17e6)).toBeCloseTo(10e6 / 2.5) // the first two are too old
  expect(at(6000, 1e6, 'b')).toBe(0)
})

test('the loudest sample of equal parts, however it came in chunks', () => {
  const samples = Float32Array.of(0.1, -0.5, 0.2, 0, 0, -0.3, 0.4, 0.1)
  const expected = Float32Array.of(0.5, 0.2, 0.3, 0.4)
  expect(peaks([samples], 4)).toEqual(expected)
  expect(peaks([samples.subarray(0, 3), samples.subarray(3)], 4)).toEqual(expected)
  expect(peaks([], 3)).toEqual(new Float32Array(3))
})

test('numbers for people', () => {
  expect([27, 340e3, 16_288_432, 2.75e9].map(bytes)).toEqual(['0.03 kB', '340 kB', '16.3 MB', '2.75 GB'])
  expect([3.26, 1234.5].map(ms)).toEqual(['3.3 ms', '1,235 ms'])
  expect([0.622, 24.06].map(seconds)).toEqual(['0.62 s', '24.1 s'])
  expect([40.2, 180, 4800].map(duration)).toEqual(['41 s', '3 min', '1 h 20 min'])
  expect(percent(0.9602)).toBe('96.0 %')
})
