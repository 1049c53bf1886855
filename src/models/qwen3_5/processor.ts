import { InputError, WeightsError } from '../../errors.ts'
import type { RgbImage } from '../../media/pixels.ts'
import { resizeBicubic } from '../../media/resize.ts'
import { type Json, jsonReader } from './json.ts'

const FILE = 'preprocessor_config.json'
const BICUBIC = 3
const { expect, object, positive, whole, wrong } = jsonReader(FILE)

/** What preprocessor_config.json says, checked. */
export interface ProcessorConfig {
  /** Pixels of a resized image, at least and at most; both are kept only as nearly as whole cells allow. */
  readonly minPixels: number
  readonly maxPixels: number
  readonly patch: number
  readonly merge: number
  /** What a byte of each channel becomes: 3 · 256 values. */
  readonly normalised: Float32Array
}

/** Patches of an image, from top to bottom and from left to right. */
export interface PatchGrid {
  readonly rows: number
  readonly columns: number
}

/** An image as the vision tower reads it: resized, still in bytes. */
export interface ProcessedImage extends PatchGrid {
  readonly pixels: RgbImage
}

/**
 * Reads preprocessor_config.json of a Qwen2VLImageProcessor(Fast).
 *
 * @throws WeightsError naming the key that is missing or not understood
 */
export function processorConfig(value: unknown): ProcessorConfig {
  const json = object(value, 'the file')
  for (const key of ['do_resize', 'do_rescale', 'do_normalize']) if (json[key] !== undefined) expect(json, key, true)
  if (json.resample !== undefined) expect(json, 'resample', BICUBIC)
  const size = json.size === undefined ? {} : object(json.size, 'size')
  const limit = (key: string, older: string): number => (key in size ? whole(size, key) : whole(json, older))
  const rescale = json.rescale_factor === undefined ? 1 / 255 : positive(json, 'rescale_factor')
  const [mean, std] = [three(json, 'image_mean'), three(json, 'image_std')]
  return {
    minPixels: limit('shortest_edge', 'min_pixels'),
    maxPixels: limit('longest_edge', 'max_pixels'),
    patch: whole(json, 'patch_size'),
    merge: whole(json, 'merge_size'),
    // as torchvision's processors fuse it: one subtraction, one division, in f32
    normalised: Float32Array.from({ length: 3 * 256 }, (_, i) => {
      const channel = i >> 8
      return Math.fround((i & 255) - Math.fround(mean[channel]! / rescale)) / Math.fround(std[channel]! / rescale)
    }),
  }
}
function three(json: Json, key: string): readonly number[] {
  const value = json[key]
  if (Array.isArray(value) && value.length === 3 && value.every(Number.isFinite)) return value
  throw wrong(key, value, 'three numbers')
}

/**
 * The size at which an image is read: its own, rounded to whole cells of `cell` pixels, or the nearest with the same
 * proportions between the limits. As Qwen2-VL's smart_resize, whose rounding takes halves to the even neighbour.
 *
 * @throws InputError for an image more than 200 times as long as wide
 */
export function smartResize(
  { width, height }: { readonly width: number; readonly height: number },
  { cell, minPixels, maxPixels }: { readonly cell: number; readonly minPixels: number; readonly maxPixels: number },
): { width: number; height: number } {
  if (Math.max(width, height) > LONGEST * Math.min(width, height))
    throw new InputError(
      `image: has ${width} x ${height} pixels, expected sides of which none is over ${LONGEST} times the other; crop it`,
    )
  const sides = (side: (length: number) => number) => ({ width: side(width) * cell, height: side(height) * cell })
  const near = sides((length) => halfToEven(length / cell))
  const pixels = near.width * near.height
  if (pixels > maxPixels) {
    const shrink = Math.sqrt((width * height) / maxPixels)
    return sides((length) => Math.max(1, Math.floor(length / shrink / cell)))
  }
  if (pixels < minPixels) {
    const grow = Math.sqrt(minPixels / (width * height))
    return sides((length) => Math.ceil((length * grow) / cell))
  }
  return near
}
const LONGEST = 200

function halfToEven(x: number): number {
  const below = Math.floor(x)
  if (x - below !== 0.5) return Math.round(x)
  return below % 2 === 0 ? below : below + 1
}

/** An image as the tower reads it. `maxPixels`: fewer than the model's own limit. */
export function processImage(image: RgbImage, c: ProcessorConfig, maxPixels = c.maxPixels): ProcessedImage {
  const limits = { minPixels: Math.min(c.minPixels, maxPixels), maxPixels: Math.min(c.maxPixels, maxPixels) }
  const { width, height } = smartResize(image, { cell: c.patch * c.merge, ...limits })
  return { rows: height / c.patch, columns: width / c.patch, pixels: resizeBicubic(image, width, height) }
}

/** Row and column of each patch in the tower's order: cells of merge x merge patches that become one token together. */
export function patchPlaces({ rows, columns }: PatchGrid, merge: number): { row: Uint32Array; column: Uint32Array } {
  const [row, column] = [new Uint32Array(rows * columns), new Uint32Array(rows * columns)]
  let at = 0
  for (let top = 0; top < rows; top += merge)
    for (let left = 0; left < columns; left += merge)
      for (let y = top; y < top + merge; y++)
        for (let x = left; x < left + merge; x++, at++) {
          row[at] = y
          column[at] = x
        }
  return { row, column }
}

/**
 * Patches in the tower's order, each the bytes of its channels, rows and columns in turn, as `value` has them:
 * [rows · columns, 3 · patch · patch]. A still has one frame: the published two are equal.
 */
export function writePatches<Values extends Float32Array | Uint16Array>(
  { pixels: { width, data }, ...grid }: ProcessedImage,
  { patch, merge }: Pick<ProcessorConfig, 'patch' | 'merge'>,
  value: Values,
  into: Values,
): void {
  const { row, column } = patchPlaces(grid, merge)
  let to = 0
  for (let n = 0; n < row.length; n++)
    for (let channel = 0; channel < 3; channel++)
      for (let y = row[n]! * patch; y < (row[n]! + 1) * patch; y++) {
        const begin = 3 * (y * width + column[n]! * patch) + channel
        for (let at = begin; at < begin + 3 * patch; at += 3) into[to++] = value[256 * channel + data[at]!]!
      }
}

/** The processor and the tower have to cut alike. */
export function expectSamePatches(c: ProcessorConfig, tower: { readonly patch: number; readonly merge: number }): void {
  if (c.patch === tower.patch && c.merge === tower.merge) return
  throw new WeightsError(
    'format',
    `${FILE}: patch_size and merge_size are ${c.patch} and ${c.merge}, expected ${tower.patch} and ${tower.merge} as in config.json`,
  )
}
