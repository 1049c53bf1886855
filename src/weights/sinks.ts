import type { Device } from '../device/device.ts'
import { GROUP, quantize } from '../device/quants.ts'
import { ShapeError } from '../errors.ts'
import type { Format, Tensor } from '../graph/tensor.ts'
import { bytesPerValue, convert, type StoredFormat } from './convert.ts'
import type { StoredTensor } from './safetensors.ts'

/** Takes bytes of a stored tensor from `offset` on; says how many bytes it wrote to the device and how many values it rounded. */
export type Sink = (bytes: Uint8Array, offset: number) => { readonly written: number; readonly inexact: number }

type Writer = Pick<Device, 'write'>

/** Keeps the bytes on the host. */
export const heldBy =
  (fill: (bytes: Uint8Array, offset: number) => void): Sink =>
  (bytes, offset) => {
    fill(bytes, offset)
    return { written: 0, inexact: 0 }
  }

/** Writes a stored tensor into a kept one from byte `start` on, in its format. */
export function convertedInto(
  device: Writer,
  kept: Tensor,
  stored: StoredTensor,
  from: StoredFormat,
  format: StoredFormat,
  start: number,
): Sink {
  return (bytes, offset) => {
    const converted = convert(bytes, from, format, stored.name)
    const data = padded(converted.bytes)
    device.write(kept, data, start + (offset / bytesPerValue[from]) * bytesPerValue[format])
    return { written: data.length, inexact: converted.inexact }
  }
}

/** Rows of q8 matrices are multiples of this: two groups, whose scales are 4 bytes. */
export const Q8_COLUMNS = 2 * GROUP

/** Quantises a stored matrix into a kept q8 one, piece by piece. No value counts as rounded: nearly all are. */
export function quantizedInto(device: Writer, kept: Tensor, stored: StoredTensor, from: StoredFormat): Sink {
  const values = (stored.end - stored.begin) / bytesPerValue[from]
  return (bytes, offset) => {
    const floats = convert(bytes, from, 'f32', stored.name).bytes.slice()
    const { quants, scales } = quantize(new Float32Array(floats.buffer))
    const at = offset / bytesPerValue[from]
    device.write(kept, new Uint8Array(quants.buffer), at)
    device.write(kept, new Uint8Array(scales.buffer), values + (2 * at) / GROUP)
    return { written: quants.length + 2 * scales.length, inexact: 0 }
  }
}

/** Where each value of an arranged tensor comes from: the index of a stored value, or less than 0 for a zero. */
export type Arrangement = (i: number) => number

export interface Arranged {
  readonly name: string
  readonly from: StoredFormat
  readonly to: StoredFormat
  /** Of the stored tensor. */
  readonly bytes: number
  /** Of the kept one. */
  readonly values: number
}

/** Holds a stored tensor until its last part has come, then writes it converted, its values arranged. */
export function arranging(
  { name, from, to, bytes, values }: Arranged,
  arrangement: Arrangement,
  write: (data: Uint8Array) => void,
): Sink {
  let whole = new Uint8Array()
  let missing = bytes
  return (part, offset) => {
    if (missing === bytes) whole = new Uint8Array(bytes)
    whole.set(part, offset)
    missing -= part.length
    if (missing > 0) return { written: 0, inexact: 0 }
    const converted = convert(whole, from, to, name)
    whole = new Uint8Array() // frees it
    const Values = bytesPerValue[to] === 4 ? Uint32Array : Uint16Array
    const stored = new Values(converted.bytes.buffer as ArrayBuffer)
    const arranged = new Values(values)
    for (let i = 0; i < values; i++) {
      const at = arrangement(i)
      if (at >= 0) arranged[i] = stored[at]!
    }
    const data = padded(new Uint8Array(arranged.buffer))
    write(data)
    return { written: data.length, inexact: converted.inexact }
  }
}

/** Devices take multiples of 4 bytes; an odd number of halves gets a zero behind it. */
function padded(bytes: Uint8Array): Uint8Array {
  if (bytes.length % 4 === 0) return bytes
  const whole = new Uint8Array(Math.ceil(bytes.length / 4) * 4)
  whole.set(bytes)
  return whole
}

/** A format that weights can have. */
export function weightFormat(label: string, format: Format | undefined): StoredFormat | 'q8' {
  if (format !== undefined && format !== 'u32') return format
  throw new ShapeError(`${label}: weights have format ${format}, expected f32, f16, bf16 or q8`)
}
