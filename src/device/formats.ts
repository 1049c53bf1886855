import type { View } from '../graph/kernel.ts'
import type { Format } from '../graph/tensor.ts'
import { f32ToF16, widened } from './halves.ts'
import { dequantized, quantized } from './quants.ts'

/** Bytes of a format as the numbers they are. Copies where the bytes are not aligned. */
export function decode(bytes: Uint8Array, format: Format): View {
  if (format === 'q8') return dequantized(bytes)
  const width = format === 'f32' || format === 'u32' ? 4 : 2
  const whole = bytes.byteOffset % width === 0 ? bytes : bytes.slice()
  const length = Math.floor(whole.byteLength / width)
  if (format === 'u32') return new Uint32Array(whole.buffer, whole.byteOffset, length)
  if (format === 'f32') return new Float32Array(whole.buffer, whole.byteOffset, length)
  return widened(new Uint16Array(whole.buffer, whole.byteOffset, length), format)
}

/** Whether all values are finite: seconds of speech in a tenth of the time of `every`. */
export function allFinite(values: Float32Array): boolean {
  let zero = 0
  for (let i = 0; i < values.length; i++) zero += values[i]! * 0 // NaN from the first one on that is not
  return zero === 0
}

/** Numbers as bytes of a format, padded to a multiple of 4. */
export function encode(view: View, format: Format): Uint8Array {
  if (format === 'f32' || format === 'u32') return new Uint8Array(view.buffer, view.byteOffset, view.byteLength).slice()
  if (format === 'q8') return quantized(view as Float32Array)
  const halves = new Uint16Array(Math.ceil(view.length / 2) * 2)
  if (format === 'f16') for (let i = 0; i < view.length; i++) halves[i] = f32ToF16(view[i]!)
  else {
    const words = new Uint32Array(Float32Array.from(view).buffer)
    for (let i = 0; i < view.length; i++) halves[i] = words[i]! >>> 16
  }
  return new Uint8Array(halves.buffer)
}
