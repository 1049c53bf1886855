import { ShapeError } from '../errors.ts'
import type { Graph } from './graph.ts'

/**
 * f16 and bf16 weights are read as packed 32-bit words; f16 values need the shader-f16 feature. q8 weights: a signed
 * byte each, all rows of them before the f16 scales of every 32 along a row.
 */
export type Format = 'f32' | 'f16' | 'bf16' | 'q8' | 'u32'

/**
 * What each run decides: T tokens of S segments in C chunks of the delta rule, R rows read back. A tensor may have one
 * of them as its leading dimension; each is at most T. '*' is a pool: as many rows as the device holds just now.
 */
export type Count = 'T' | 'S' | 'C' | 'R'
export type Counts = Readonly<Record<Count, number>>
export type Dim = number | Count | '*'
export type Shape = readonly Dim[]

/** A value in a graph: what it is, not where it lives. */
export interface Tensor {
  readonly id: number
  readonly label: string
  readonly shape: Shape
  readonly format: Format
  /** 'kept' tensors (weights, pools) belong to a device and outlive runs; 'input' is written before a run. */
  readonly place: 'kept' | 'input' | 'value'
  readonly graph?: Graph
}

let ids = 0
export function tensor(t: Omit<Tensor, 'id'>): Tensor {
  const symbol = t.shape.slice(1).find((d) => typeof d !== 'number')
  if (symbol !== undefined) throw new ShapeError(`${t.label}: only the leading dimension may be ${symbol}`)
  if (t.shape.some((d) => typeof d === 'number' && !(Number.isInteger(d) && d > 0)))
    throw new ShapeError(`${t.label}: shape [${t.shape}] has a dimension that is not a positive integer`)
  return { id: ids++, ...t }
}

/** The same values in rows of another width; a run has to have the counts for it. */
export const reshaped = (t: Tensor, shape: Shape): Tensor => ({ ...t, shape })

/** Bytes of a value; of q8 with its share of a scale. */
export const formatBytes: Record<Format, number> = { f32: 4, f16: 2, bf16: 2, q8: 34 / 32, u32: 4 }

/** Elements of one row, that is of everything behind the leading dimension. */
export const rowSize = (t: Tensor): number => t.shape.slice(1).reduce<number>((n, d) => n * (d as number), 1)
export const last = (t: Tensor): number => {
  const n = t.shape.at(-1)
  if (typeof n !== 'number') throw new ShapeError(`${t.label}: shape [${t.shape}] has no fixed last dimension`)
  return n
}
const aligned = (bytes: number): number => Math.ceil(bytes / 4) * 4
export const rowBytes = (t: Tensor): number => rowSize(t) * formatBytes[t.format]

/** Leading dimension of t in a run with these counts; `pool` rows for a pool. */
export function leading(t: Tensor, counts: Counts, pool = 0): number {
  const d = t.shape[0] ?? 1
  return typeof d === 'number' ? d : d === '*' ? pool : counts[d]
}

export const elements = (t: Tensor, counts: Counts, pool = 0): number => leading(t, counts, pool) * rowSize(t)
export const bytes = (t: Tensor, counts: Counts, pool = 0): number =>
  aligned(elements(t, counts, pool) * formatBytes[t.format])

/** Bytes of a slot that holds t for runs of up to `capacity` tokens. */
export const capacityBytes = (t: Tensor, capacity: number): number =>
  bytes(t, { T: capacity, S: capacity, C: capacity, R: capacity })

export const sameShape = (a: Shape, b: Shape): boolean => a.length === b.length && a.every((d, i) => d === b[i])

export function expectShape(op: string, name: string, t: Tensor, expected: Shape): void {
  if (sameShape(t.shape, expected)) return
  throw new ShapeError(`${op}: ${name} (${t.label}) has shape [${t.shape}], expected [${expected}]`)
}

export function expectFormat(op: string, name: string, t: Tensor, ...expected: Format[]): void {
  if (expected.includes(t.format)) return
  throw new ShapeError(`${op}: ${name} (${t.label}) has format ${t.format}, expected ${expected.join(' or ')}`)
}
