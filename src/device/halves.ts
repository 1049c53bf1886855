/** Formats of 16 bits. */
export type Half = 'f16' | 'bf16'

const word = new Uint32Array(1)
const float = new Float32Array(word.buffer)

/** bfloat16 is the upper half of an f32. Exact. */
export function bf16ToF32(half: number): number {
  word[0] = half << 16
  return float[0]!
}

/** IEEE binary16 to f32. Exact. */
export function f16ToF32(half: number): number {
  const sign = half & 0x8000 ? -1 : 1
  const exponent = (half >> 10) & 31
  const fraction = half & 1023
  if (exponent === 0) return sign * fraction * 2 ** -24
  if (exponent === 31) return fraction ? Number.NaN : sign * Number.POSITIVE_INFINITY
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15)
}

/** The f32 values of all 65,536 halves of a format: looking one up takes a tenth of the time that computing it takes. */
export function halfValues(format: Half): Float32Array {
  const made = tables[format]
  if (made) return made
  const value = format === 'f16' ? f16ToF32 : bf16ToF32
  const table = new Float32Array(65536)
  for (let half = 0; half < table.length; half++) table[half] = value(half)
  tables[format] = table
  return table
}
const tables: Partial<Record<Half, Float32Array>> = {}

/** Halves as the numbers they are. Exact. */
export function widened(halves: Uint16Array, format: Half): Float32Array {
  const values = halfValues(format)
  const out = new Float32Array(halves.length)
  for (let i = 0; i < halves.length; i++) out[i] = values[halves[i]!]!
  return out
}

/** f32 to IEEE binary16, to nearest even. */
export function f32ToF16(value: number): number {
  float[0] = value
  const bits = word[0]!
  const sign = (bits >>> 16) & 0x8000
  const magnitude = bits & 0x7fffffff
  if (magnitude > 0x7f800000) return sign | 0x7e00
  if (magnitude >= 0x477ff000) return sign | 0x7c00 // rounds to infinity
  if (magnitude < 0x38800000) return sign | roundEven(Math.abs(float[0]!) * 2 ** 24) // subnormal
  const rounded = magnitude + 0xfff + ((magnitude >>> 13) & 1)
  return sign | ((rounded - 0x38000000) >>> 13)
}

function roundEven(x: number): number {
  const floor = Math.floor(x)
  const rest = x - floor
  return rest > 0.5 || (rest === 0.5 && floor % 2 === 1) ? floor + 1 : floor
}
