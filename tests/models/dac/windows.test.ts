import { describe, expect, test } from 'vitest'
import { dacConfig } from '../../../src/models/dac/config.ts'
import { decoderContext, encoderContext, windows } from '../../../src/models/dac/windows.ts'
import { fixtureJson } from '../../fixtures.ts'

const c = dacConfig(fixtureJson('dac-tiny/config.json'))

test('context of the 44.1 kHz codec: 10 frames around a decoded one, samples -3733 to 4244 from the start of an encoded one', () => {
  expect(decoderContext(c)).toEqual({ left: 10, right: 10 })
  expect(encoderContext(c)).toEqual({ left: Math.ceil(3733 / 512), right: Math.ceil((4244 - 511) / 512) })
})

describe('windows', () => {
  const context = { left: 3, right: 2 }
  test.each([
    [1, 10],
    [10, 10],
    [11, 10],
    [57, 10],
    [57, 6],
  ])('of %i frames, %i at most, keep each once with its context', (frames, most) => {
    const made = windows(0, frames, frames, context, most)
    let next = 0
    for (const { begin, end, from, to } of made) {
      expect(end - begin).toBeLessThanOrEqual(most)
      expect(from).toBe(next)
      expect(to).toBeGreaterThan(from)
      expect(begin).toBe(Math.max(0, from - 3))
      expect(end).toBe(Math.min(frames, to + 2))
      next = to
    }
    expect(next).toBe(frames)
    if (frames <= most) expect(made.length).toBe(1)
  })

  test('of frames that are still coming run no further than their context', () => {
    expect(windows(4, 9, Number.POSITIVE_INFINITY, context, 100)).toEqual([{ begin: 1, end: 11, from: 4, to: 9 }])
    expect(windows(4, 4, Number.POSITIVE_INFINITY, context, 100)).toEqual([])
    expect(windows(0, -2, Number.POSITIVE_INFINITY, context, 100)).toEqual([])
  })
})
