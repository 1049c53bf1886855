import type { RgbImage } from './pixels.ts'

/**
 * The image at another size by bicubic interpolation that is wider where it shrinks (antialiased), to the bit what
 * torchvision makes of bytes: columns first, then rows, each pass in integers and rounded to bytes.
 */
export function resizeBicubic(image: RgbImage, width: number, height: number): RgbImage {
  const { width: fromWidth, height: fromHeight } = image
  const wide = fromWidth === width ? image.data : across(image, width)
  const data = fromHeight === height ? wide : down({ width, height: fromHeight, data: wide }, height)
  return { width, height, data }
}

/** Every row in `width` pixels. */
function across({ width: from, height, data }: RgbImage, width: number): Uint8Array {
  const { first, weights, taps, bits } = filterOf(from, width)
  const half = 2 ** (bits - 1)
  const resized = new Uint8ClampedArray(3 * width * height)
  for (let y = 0, to = 0; y < height; y++) {
    for (let x = 0, w = 0; x < width; x++, to += 3) {
      let [red, green, blue] = [half, half, half]
      for (let i = 0, at = 3 * (y * from + first[x]!); i < taps; i++, w++, at += 3) {
        const weight = weights[w]!
        red += Math.imul(weight, data[at]!)
        green += Math.imul(weight, data[at + 1]!)
        blue += Math.imul(weight, data[at + 2]!)
      }
      resized[to] = red >> bits
      resized[to + 1] = green >> bits
      resized[to + 2] = blue >> bits
    }
  }
  return new Uint8Array(resized.buffer)
}

/** Every column in `height` pixels: rows are added up two at a time. */
function down({ width, height: from, data }: RgbImage, height: number): Uint8Array {
  const { first, weights, taps, bits } = filterOf(from, height)
  const stride = 3 * width
  const resized = new Uint8ClampedArray(stride * height)
  const sums = new Int32Array(stride)
  for (let y = 0; y < height; y++) {
    sums.fill(2 ** (bits - 1))
    for (let i = 0; i < taps; i += 2) {
      const [weight, below] = [weights[y * taps + i]!, weights[y * taps + i + 1]!]
      const at = (first[y]! + i) * stride
      const next = Math.min(at + stride, data.length - stride)
      for (let x = 0; x < stride; x++) sums[x]! += Math.imul(weight, data[at + x]!) + Math.imul(below, data[next + x]!)
    }
    for (let x = 0; x < stride; x++) resized[y * stride + x] = sums[x]! >> bits
  }
  return new Uint8Array(resized.buffer)
}

interface Filter {
  /** The first pixel that each new one is made of. */
  readonly first: Int32Array
  /** [new pixels, taps] in 2^-bits, zeros where there are fewer. */
  readonly weights: Int32Array
  /** An even number. Where there are no so many pixels, what is read behind the last one weighs nothing. */
  readonly taps: number
  readonly bits: number
}

/** Of one axis: which pixels, with which weights, in 16-bit integers of as many fractional bits as fit. */
function filterOf(from: number, to: number): Filter {
  const scale = from / to
  const stretch = Math.max(1, scale)
  const windows = Array.from({ length: to }, (_, i) => {
    const centre = scale * (i + 0.5)
    const begin = Math.max(0, Math.trunc(centre - 2 * stretch + 0.5))
    const end = Math.min(from, Math.trunc(centre + 2 * stretch + 0.5))
    const weights = Array.from({ length: end - begin }, (_, j) => cubic((begin + j - centre + 0.5) / stretch))
    const sum = weights.reduce((a, b) => a + b, 0)
    return { begin, weights: weights.map((weight) => weight / sum) }
  })
  const most = windows.reduce((n, { weights }) => Math.max(n, weights.length), 0)
  const taps = most + (most % 2)
  const largest = windows.reduce((n, { weights }) => weights.reduce((a, b) => Math.max(a, b), n), 0)
  let bits = MOST_BITS
  while (bits > 0 && Math.round(largest * 2 ** bits) >= 2 ** 15) bits--
  const [first, weights] = [new Int32Array(to), new Int32Array(to * taps)]
  windows.forEach(({ begin, weights: exact }, i) => {
    first[i] = Math.max(0, Math.min(begin, from - taps))
    weights.set(
      exact.map((weight) => rounded(weight * 2 ** bits)),
      i * taps + begin - first[i]!,
    )
  })
  return { first, weights, taps, bits }
}
const MOST_BITS = 22

/** Halves away from zero. */
const rounded = (x: number): number => Math.sign(x) * Math.floor(Math.abs(x) + 0.5)

/** Keys' cubic convolution with a = -1/2 (1981). */
function cubic(x: number): number {
  const d = Math.abs(x)
  if (d < 1) return (1.5 * d - 2.5) * d * d + 1
  if (d < 2) return ((-0.5 * d + 2.5) * d - 4) * d + 2
  return 0
}
