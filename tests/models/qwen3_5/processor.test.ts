import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { RgbImage } from '../../../src/media/pixels.ts'
import { createAlbum } from '../../../src/models/qwen3_5/album.ts'
import { rowPositions } from '../../../src/models/qwen3_5/positions.ts'
import {
  patchPlaces,
  processImage,
  processorConfig,
  smartResize,
  writePatches,
} from '../../../src/models/qwen3_5/processor.ts'
import table from './smart_resize.json' with { type: 'json' }
import { given, golden, goldenShape, images, processors, vision } from './vision_fixture.ts'

test.each(Object.entries(images))('%s is resized to the bit as torchvision does', (name, image) => {
  const { width, height, data } = image.pixels
  expect(goldenShape(`${name}.resized`)).toEqual([3, height, width])
  const want = golden(`${name}.resized`) // by channels
  const area = width * height
  expect(Uint8Array.from(want, (_, i) => data[3 * (i % area) + Math.floor(i / area)]!)).toEqual(Uint8Array.from(want))
  expect([1, image.rows, image.columns]).toEqual([...golden(`${name}.grid_thw`)])
})

test.each(['solid.small', 'gradient.small', 'noise.small'])('%s is cut as the reference does, twice', (name) => {
  const image = images[name]!
  const area = vision.patch ** 2
  const patches = new Float32Array(image.rows * image.columns * 3 * area)
  writePatches(image, vision, processors.small.normalised, patches)
  const frames = golden(`${name}.pixel_values`) // [N, channel, frame, y, x]
  for (const frame of [0, 1]) expect(patches).toEqual(frames.filter((_, i) => Math.floor(i / area) % 2 === frame))
})

test.each(Object.entries(given.prompts).filter(([, { images }]) => images.length > 0))(
  'positions of %s',
  (name, prompt) => {
    const album = createAlbum(10_000, vision.merge)
    const seen = prompt.images.map((image) => album.see(images[image]!))
    const tokens = seen.flatMap(({ first, tokens }) => Array.from({ length: tokens }, (_, i) => first + i))
    const ids = prompt.ids.map((id) => (id === vision.imageToken ? tokens.shift()! : id))
    const axes = rowPositions(ids, seen, vision.merge)
    expect(axes.flatMap((axis) => [...axis])).toEqual([...golden(`${name}.position_ids`)])
    const highest = Math.max(...axes.flatMap((axis) => [...axis]))
    expect(highest + 1 - ids.length).toBe(prompt.rope_delta)
  },
)

test('the same pixels have the same ids, others have not', () => {
  const album = createAlbum(100, 2)
  const [noise, solid] = [images['noise.small']!, images['solid.small']!]
  const first = album.see(noise)
  expect(first).toMatchObject({ first: 100, tokens: 12 })
  expect(album.see(solid)).toMatchObject({ first: 112, tokens: 16 })
  const data = noise.pixels.data.slice()
  expect(album.see({ ...noise, pixels: { ...noise.pixels, data } })).toBe(first)
  data[70]! ^= 1
  expect(album.see({ ...noise, pixels: { ...noise.pixels, data } }).first).toBe(128)
})

const published = { cell: 32, minPixels: 65536, maxPixels: 16777216 }

describe('the size at which an image is read', () => {
  test.each([
    [224, 224, 256, 256],
    [256, 256, 256, 256],
    [200, 300, 224, 320],
    [336, 336, 320, 320],
    [384, 384, 384, 384],
    [448, 448, 448, 448],
    [640, 480, 640, 480],
    [720, 1280, 704, 1280],
    [1080, 1920, 1088, 1920],
    [32, 32, 256, 256],
    [400, 368, 384, 384], // 12.5 and 11.5 cells: both halves to the even 12
    [432, 464, 448, 448], // 13.5 and 14.5 cells
  ])('%i x %i is read at %i x %i', (height, width, toHeight, toWidth) => {
    expect(smartResize({ width, height }, published)).toEqual({ width: toWidth, height: toHeight })
  })

  test('lower limits', () => {
    const limits = { ...published, minPixels: 50176 }
    expect(smartResize({ width: 224, height: 224 }, limits)).toEqual({ width: 224, height: 224 })
    const small = { ...published, minPixels: 4096, maxPixels: 65536 }
    expect(smartResize({ width: 80, height: 112 }, small)).toEqual({ width: 64, height: 128 })
    expect(smartResize({ width: 20000, height: 100 }, small)).toEqual({ width: 3616, height: 32 })
  })

  test('a table that Python made, whose round() takes halves to the even', () => {
    expect(table.length).toBeGreaterThan(200)
    for (const [height = 0, width = 0, minPixels = 0, maxPixels = 0, toHeight, toWidth] of table)
      expect(smartResize({ width, height }, { cell: 32, minPixels, maxPixels }), `${height} x ${width}`).toEqual({
        width: toWidth,
        height: toHeight,
      })
  })

  test('whatever comes: whole cells, the same on its side, and read at its own size from then on', () => {
    const side = fc.integer({ min: 1, max: 20000 })
    const limit = fc.integer({ min: 4096, max: 2 ** 24 })
    fc.assert(
      fc.property(side, side, limit, limit, (width, height, a, b) => {
        fc.pre(Math.max(width, height) <= 200 * Math.min(width, height))
        const limits = { cell: 32, minPixels: Math.min(a, b), maxPixels: Math.max(a, b) }
        const to = smartResize({ width, height }, limits)
        expect([to.width % 32, to.height % 32]).toEqual([0, 0])
        expect(Math.min(to.width, to.height)).toBeGreaterThanOrEqual(32)
        const turned = smartResize({ width: height, height: width }, limits)
        expect(turned).toEqual({ width: to.height, height: to.width })
        const pixels = to.width * to.height
        if (pixels >= limits.minPixels && pixels <= limits.maxPixels) expect(smartResize(to, limits)).toEqual(to)
      }),
    )
  })

  test('rounding is to the nearest cell and of halves to the even one', () => {
    const free = { cell: 32, minPixels: 1, maxPixels: 2 ** 40 }
    fc.assert(
      fc.property(fc.integer({ min: 32, max: 5000 }), (width) => {
        const cells = smartResize({ width, height: 320 }, free).width / 32
        expect(Math.abs(cells - width / 32)).toBeLessThanOrEqual(0.5)
        if (width % 32 === 16) expect(cells % 2).toBe(0)
      }),
    )
  })

  test('a strip is refused', () => {
    expect(() => smartResize({ width: 2001, height: 10 }, published)).toThrow('2001 x 10 pixels')
    expect(smartResize({ width: 2000, height: 10 }, published).height).toBeGreaterThan(0)
  })
})

test('patches of a token lie together, tokens from left to right and from top to bottom', () => {
  const { row, column } = patchPlaces({ rows: 4, columns: 4 }, 2)
  expect([...row]).toEqual([0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3])
  expect([...column]).toEqual([0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3])
})

test('a caller may ask for fewer pixels than the model reads', () => {
  const image: RgbImage = { width: 640, height: 480, data: new Uint8Array(3 * 640 * 480).fill(9) }
  const { rows, columns, pixels } = processImage(image, processors.default, 100_000)
  expect([rows, columns]).toEqual([16, 22])
  expect(pixels.data.every((byte) => byte === 9)).toBe(true)
})

describe('preprocessor_config.json', () => {
  const json = {
    size: { shortest_edge: 65536, longest_edge: 16777216 },
    ...{ patch_size: 16, merge_size: 2, image_mean: [0.5, 0.5, 0.5], image_std: [0.5, 0.5, 0.5] },
  }
  test('size goes before min_pixels and max_pixels, which do without it', () => {
    const older = { min_pixels: 4096, max_pixels: 8192 }
    expect(processorConfig({ ...json, ...older })).toMatchObject({ minPixels: 65536, maxPixels: 16777216 })
    expect(processorConfig({ ...json, size: undefined, ...older })).toMatchObject({ minPixels: 4096, maxPixels: 8192 })
  })
  test('what a byte becomes', () => {
    const { normalised } = processorConfig({ ...json, image_mean: [0.5, 0, 0.5], image_std: [0.5, 1, 0.25] })
    expect([normalised[0], normalised[255], normalised[256 + 51], normalised[512 + 255]]).toEqual([
      -1,
      1,
      Math.fround(51 / 255),
      2,
    ])
  })
  test.each([
    ['resample', { resample: 2 }],
    ['do_normalize', { do_normalize: false }],
    ['image_mean', { image_mean: [0.5] }],
    ['patch_size', { patch_size: 0 }],
  ])('%s that is not understood is named', (key, more) => {
    expect(() => processorConfig({ ...json, ...more })).toThrow(`preprocessor_config.json: ${key} is`)
  })
})
