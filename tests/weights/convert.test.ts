import { assert, double, float, property } from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ShapeError } from '../../src/errors.ts'
import { convert, type StoredFormat } from '../../src/weights/convert.ts'
import { bytesOf } from './build.ts'

const all = Uint16Array.from({ length: 65536 }, (_, i) => i)
const f32s = (bytes: Uint8Array) => new Float32Array(bytes.slice().buffer)
const u16s = (bytes: Uint8Array) => new Uint16Array(bytes.slice().buffer)

/** Value of a half by its definition: (-1)^s 2^(e - bias) 1.f, subnormal where e is 0. */
function decode(half: number, exponentBits: number): number {
  const fractionBits = 15 - exponentBits
  const bias = 2 ** (exponentBits - 1) - 1
  const e = (half >> fractionBits) & (2 ** exponentBits - 1)
  const f = (half & (2 ** fractionBits - 1)) / 2 ** fractionBits
  const sign = half & 0x8000 ? -1 : 1
  if (e === 2 ** exponentBits - 1) return f === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN
  return sign * (e === 0 ? f * 2 ** (1 - bias) : (1 + f) * 2 ** (e - bias))
}
const exponentBits = { f16: 5, bf16: 8 } as const

describe.each(['f16', 'bf16'] as const)('%s', (format) => {
  const values = Array.from(all, (half) => decode(half, exponentBits[format]))
  /** Finite values in order, with their halves: the reference of rounding. */
  const sorted = Array.from(all)
    .filter((half) => half < 0x8000 && Number.isFinite(values[half]!))
    .map((half) => ({ half, value: values[half]! }))

  test('every half widens exactly', () => {
    const { bytes, inexact } = convert(bytesOf(all), format, 'f32')
    expect(inexact).toBe(0)
    expect(f32s(bytes).every((x, half) => Object.is(x, values[half]))).toBe(true)
  })

  test('every half comes back from f32', () => {
    const back = convert(convert(bytesOf(all), format, 'f32').bytes, 'f32', format)
    expect(back.inexact).toBe(0)
    u16s(back.bytes).forEach((half, i) => {
      if (Number.isNaN(values[i])) expect(decode(half, exponentBits[format])).toBeNaN()
      else expect(half).toBe(i)
    })
  })

  test('the middle of two halves rounds to the even one, and anything beside it to the nearer one', () => {
    let middles = 0
    for (let i = 0; i + 1 < sorted.length; i++) {
      const [low, high] = [sorted[i]!, sorted[i + 1]!]
      const middle = (low.value + high.value) / 2
      if (Math.fround(middle) !== middle || middle < 2 ** -126) continue
      const above = middle * (1 + 2 ** -23)
      const below = middle * (1 - 2 ** -23)
      const { bytes, inexact } = convert(bytesOf(Float32Array.of(middle, above, below, -middle)), 'f32', format)
      const even = low.half % 2 === 0 ? low.half : high.half
      expect(Array.from(u16s(bytes))).toEqual([even, high.half, low.half, even | 0x8000])
      expect(inexact).toBe(4)
      middles++
    }
    expect(middles).toBeGreaterThan(30000)
  })

  test('random values round to the nearest', () => {
    const max = sorted.at(-1)!.value
    const finite = double({ min: -max, max, noNaN: true }).map(Math.fround)
    const small = float({ min: Math.fround(-1e-4), max: Math.fround(1e-4), noNaN: true })
    for (const values of [finite, small]) {
      assert(
        property(values, (x) => {
          const { bytes } = convert(bytesOf(Float32Array.of(x)), 'f32', format)
          const got = decode(u16s(bytes)[0]!, exponentBits[format])
          const nearest = Math.min(...neighbours(Math.abs(x)).map((v) => Math.abs(v - Math.abs(x))))
          return Math.abs(got - x) === nearest
        }),
        { numRuns: 3000 },
      )
    }
    function neighbours(x: number): number[] {
      let [low, high] = [0, sorted.length - 1]
      while (low < high) {
        const middle = (low + high) >> 1
        if (sorted[middle]!.value < x) low = middle + 1
        else high = middle
      }
      return [sorted[Math.max(0, low - 1)]!.value, sorted[low]!.value]
    }
  })
})

describe('bf16 to f16', () => {
  const bits = (x: number) => new Uint32Array(Float32Array.of(x).buffer)[0]! >>> 16
  test('is what rounding the f32 value gives', () => {
    const fits = all.filter((half) => !(Math.abs(decode(half, 8)) > 65504))
    expect(fits.length).toBeGreaterThan(30000)
    const direct = convert(bytesOf(fits), 'bf16', 'f16')
    const through = convert(convert(bytesOf(fits), 'bf16', 'f32').bytes, 'f32', 'f16')
    expect(direct.inexact).toBe(through.inexact)
    expect(direct.inexact).toBeGreaterThan(0)
    expect(u16s(direct.bytes).every((half, i) => half === u16s(through.bytes)[i])).toBe(true)
  })
  test('is exact from 2^-14 to 65504, rounds below, and counts what it rounds', () => {
    const exact = [2 ** -14, -(2 ** -14), 1.5, 65280, -0.0078125, 0, 1020 * 2 ** -24, 2 ** -24]
    expect(convert(bytesOf(Uint16Array.from(exact, bits)), 'bf16', 'f16').inexact).toBe(0)
    const rounded = [32.25 * 2 ** -24, 2 ** -25, 1e-30]
    const { bytes, inexact } = convert(bytesOf(Uint16Array.from([...exact, ...rounded], bits)), 'bf16', 'f16')
    expect(inexact).toBe(3)
    expect(Array.from(u16s(bytes).slice(-3))).toEqual([32, 0, 0]) // the nearest, a tie to even, underflow
  })
})

test('f16 to bf16 keeps what has 8 bits and counts the rest', () => {
  const { bytes, inexact } = convert(bytesOf(Uint16Array.of(0x3c00, 0x3c01, 0x3c04, 0x3c08)), 'f16', 'bf16')
  expect(Array.from(u16s(bytes))).toEqual([0x3f80, 0x3f80, 0x3f80, 0x3f81]) // 1 + 2^-8 is a tie
  expect(inexact).toBe(2)
})

test.each<[StoredFormat, Uint8Array]>([
  ['f32', bytesOf(Float32Array.of(1, 65520))],
  ['f32', bytesOf(Float32Array.of(-1e30))],
  ['bf16', bytesOf(Uint16Array.of(0x3f80, 0x4780))], // 65536
])('a value beyond f16 is an error (%s)', (from, bytes) => {
  expect(() => convert(bytes, from, 'f16', 'w')).toThrow(
    expect.objectContaining({ name: 'WeightsError', code: 'overflow' }),
  )
  expect(() => convert(bytes, from, 'f16', 'w')).toThrow(
    /^w: the value (65520|-1\.0\d*e\+30|65536) does not fit in f16/,
  )
})

test('65519 rounds to 65504; infinity and NaN stay what they are', () => {
  const { bytes, inexact } = convert(bytesOf(Float32Array.of(65519, Infinity, -Infinity, NaN)), 'f32', 'f16')
  const halves = u16s(bytes)
  expect(Array.from(halves.slice(0, 3))).toEqual([0x7bff, 0x7c00, 0xfc00])
  expect(decode(halves[3]!, 5)).toBeNaN()
  expect(inexact).toBe(1)
})

test('bytes need no alignment', () => {
  for (const [from, to] of [
    ['f32', 'f16'],
    ['f16', 'f32'],
    ['bf16', 'f32'],
    ['bf16', 'f16'],
  ] as const) {
    const values =
      from === 'f32' ? bytesOf(Float32Array.of(1, -2, 0.5)) : bytesOf(Uint16Array.of(0x3c00, 0x4000, 0x3800))
    for (const shift of [1, 2, 3]) {
      const moved = new Uint8Array(values.length + shift)
      moved.set(values, shift)
      expect(convert(moved.subarray(shift), from, to)).toEqual(convert(values, from, to))
    }
  }
})

test('nothing changes between equal formats, and broken values are an error', () => {
  const bytes = new Uint8Array(6)
  expect(convert(bytes, 'bf16', 'bf16')).toEqual({ bytes, inexact: 0 })
  expect(() => convert(bytes, 'f32', 'f16')).toThrow(ShapeError)
  expect(() => convert(bytes.subarray(1), 'f16', 'f32')).toThrow(ShapeError)
})
