import { f32ToF16, type Half, halfValues, widened } from '../device/halves.ts'
import { ShapeError, WeightsError } from '../errors.ts'

/** Formats in which checkpoints hold weights: F32, F16 and BF16. */
export type StoredFormat = 'f32' | 'f16' | 'bf16'

export const bytesPerValue: Readonly<Record<StoredFormat, number>> = { f32: 4, f16: 2, bf16: 2 }

export interface Converted {
  readonly bytes: Uint8Array
  /** How many values the new format rounds. */
  readonly inexact: number
}

/**
 * Little-endian values of one format in another one, rounded to nearest even. `bytes` need not be aligned; where nothing
 * changes it is returned itself. WeightsError 'overflow' where a finite value becomes infinite (f16 ends at 65504);
 * `where` names the tensor in the message.
 */
export function convert(bytes: Uint8Array, from: StoredFormat, to: StoredFormat, where = 'convert'): Converted {
  if (bytes.length % bytesPerValue[from] !== 0) {
    throw new ShapeError(`${where}: ${bytes.length} bytes are no whole number of ${from} values`)
  }
  if (from === to) return { bytes, inexact: 0 }
  if (from === 'f32') return narrow(floats(bytes), to as Half, where)
  if (to === 'f32') return { bytes: new Uint8Array(widened(halves(bytes), from).buffer), inexact: 0 }
  return exchange(halves(bytes), from, to, where)
}

function narrow(source: Float32Array, to: Half, where: string): Converted {
  const round = rounding[to]
  const values = halfValues(to)
  const out = new Uint16Array(source.length)
  let inexact = 0
  for (let i = 0; i < source.length; i++) {
    const value = source[i]!
    const half = round(value)
    out[i] = half
    const kept = values[half]!
    if (kept === value || Number.isNaN(value)) continue
    if (!Number.isFinite(kept)) throw overflow(value, to, where)
    inexact++
  }
  return { bytes: new Uint8Array(out.buffer), inexact }
}

function exchange(source: Uint16Array, from: Half, to: Half, where: string): Converted {
  const { halves: table, fit } = exchangeTable(from, to)
  const out = new Uint16Array(source.length)
  let inexact = 0
  let worst = 0
  for (let i = 0; i < source.length; i++) {
    const half = source[i]!
    out[i] = table[half]!
    inexact += fit[half]! & rounds
    worst |= fit[half]!
  }
  if (worst & overflows) throw overflow(halfValues(from)[source.find((half) => fit[half] === overflows)!]!, to, where)
  return { bytes: new Uint8Array(out.buffer), inexact }
}

/** bfloat16 is the upper half of an f32; the lower half is rounded away, to nearest even. */
function f32ToBf16(value: number): number {
  scratch[0] = value
  const bits = scratchBits[0]!
  if (Number.isNaN(value)) return (bits >>> 16) | 0x40
  return (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16
}
const scratch = new Float32Array(1)
const scratchBits = new Uint32Array(scratch.buffer)

const rounding: Readonly<Record<Half, (value: number) => number>> = { f16: f32ToF16, bf16: f32ToBf16 }

const rounds = 1
const overflows = 2

/** What each half of one format is in the other one, and how it fits: 0 exact, 1 rounded, 2 overflow. */
function exchangeTable(from: Half, to: Half): { readonly halves: Uint16Array; readonly fit: Uint8Array } {
  const made = exchangeTables[from]
  if (made) return made
  const values = halfValues(from)
  const table = Uint16Array.from(values, rounding[to])
  const fit = Uint8Array.from(values, (value, i) => {
    const kept = halfValues(to)[table[i]!]!
    if (kept === value || Number.isNaN(value)) return 0
    return Number.isFinite(kept) ? rounds : overflows
  })
  exchangeTables[from] = { halves: table, fit }
  return exchangeTables[from]
}
const exchangeTables: Partial<Record<Half, { halves: Uint16Array; fit: Uint8Array }>> = {}

const overflow = (value: number, to: Half, where: string): WeightsError =>
  new WeightsError('overflow', `${where}: the value ${value} does not fit in ${to}; load it as f32`)

const aligned = (bytes: Uint8Array, width: number): Uint8Array =>
  bytes.byteOffset % width === 0 ? bytes : bytes.slice()

function floats(bytes: Uint8Array): Float32Array {
  const { buffer, byteOffset, byteLength } = aligned(bytes, 4)
  return new Float32Array(buffer, byteOffset, byteLength / 4)
}

function halves(bytes: Uint8Array): Uint16Array {
  const { buffer, byteOffset, byteLength } = aligned(bytes, 2)
  return new Uint16Array(buffer, byteOffset, byteLength / 2)
}
