import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { RgbImage } from '../../src/media/pixels.ts'
import { rgbOnWhite } from '../../src/media/pixels.ts'
import { resizeBicubic } from '../../src/media/resize.ts'

// that it is torchvision's to the bit is tested where its images are: tests/models/qwen3_5/processor.test.ts

const row = (...grey: number[]): RgbImage => ({
  width: grey.length,
  height: 1,
  data: Uint8Array.from(grey.flatMap((v) => [v, v, 255 - v])),
})
const reds = ({ data }: RgbImage): number[] => [...data].filter((_, i) => i % 3 === 0)

test('twice as wide, by the weights of the cubic at quarters', () => {
  // at 1/4 between two pixels: -0.0234375, 0.2265625, 0.8671875, -0.0703125; what lies outside is left out
  expect(reds(resizeBicubic(row(0, 0, 128, 128, 128), 10, 1))).toEqual([0, 0, 0, 26, 102, 137, 131, 128, 128, 128])
})

test('overshoot stays within a byte', () => {
  expect(reds(resizeBicubic(row(0, 0, 255, 255), 8, 1))).toEqual([0, 0, 0, 52, 203, 255, 255, 255])
})

test('one colour stays that colour at every size, and a size of its own changes nothing', () => {
  const size = fc.integer({ min: 1, max: 40 })
  const byte = fc.integer({ min: 0, max: 255 })
  fc.assert(
    fc.property(size, size, size, size, byte, byte, byte, (w, h, toWidth, toHeight, r, g, b) => {
      const data = Uint8Array.from({ length: 3 * w * h }, (_, i) => [r, g, b][i % 3]!)
      const resized = resizeBicubic({ width: w, height: h, data }, toWidth, toHeight)
      expect(resized.data.length).toBe(3 * toWidth * toHeight)
      for (let i = 0; i < resized.data.length; i++) expect(resized.data[i]).toBe([r, g, b][i % 3])
    }),
  )
  const noise: RgbImage = { width: 5, height: 3, data: Uint8Array.from({ length: 45 }, (_, i) => (i * 89) % 256) }
  expect(resizeBicubic(noise, 5, 3)).toEqual(noise)
})

test('what is opaque stays, what is clear is white, between them is between', () => {
  const rgba = Uint8Array.of(10, 20, 30, 255, 10, 20, 30, 0, 0, 100, 200, 128)
  expect([...rgbOnWhite(rgba, 3, 1).data]).toEqual([10, 20, 30, 255, 255, 255, 127, 177, 227])
})
