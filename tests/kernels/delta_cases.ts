import { CHUNK, segmentTables, tableShapes } from '../../src/graph/segments.ts'
import type { DeltaDims } from '../../src/kernels/delta_prepare.ts'
import { type DeltaForm, deltaRule } from '../../src/kernels/delta_rule.ts'
import { type Case, noise, type Operand, type Results } from '../check.ts'
import { fixtureTensors } from '../fixtures.ts'

/** What the delta rule takes, for segments of these lengths one after another. */
export interface DeltaData {
  readonly dims: DeltaDims
  readonly lengths: readonly number[]
  readonly qkv: Float32Array
  readonly gates: Float32Array
  /** [segments, NV, DK, DV]; without it they start from zeros. */
  readonly state0?: Float32Array | undefined
}

const widths = ({ keyHeads: NK, valueHeads: NV, keyWidth: DK, valueWidth: DV }: DeltaDims) => ({
  qkv: 2 * NK * DK + NV * DV,
  gates: 2 * NV,
  state: NV * DK * DV,
})

/** Operands of `tables` by name, and the counts. */
export function tableOperands(lengths: readonly number[], from: readonly number[], to: readonly number[]) {
  let kvStart = 0
  const segments = lengths.map((length, i) => {
    const s = { length, from: from[i]!, to: to[i]!, prefixStart: 0, prefixLength: 0, kvStart, kvBefore: 0 }
    kvStart += length
    return s
  })
  const { counts, ...tables } = segmentTables(segments, 1)
  const operand = (name: keyof typeof tableShapes): Operand => ({
    shape: tableShapes[name],
    format: 'u32',
    data: tables[name],
  })
  return {
    counts,
    operands: { segments: operand('segments'), segmentOf: operand('segmentOf'), chunks: operand('chunks') },
  }
}

export interface Slots {
  readonly from: readonly number[]
  readonly to: readonly number[]
}

/** Unless told, segment i starts from slot 1 + i, or from zeros, and leaves its state in slot 1 + S + i. */
export function deltaOperands({ dims, lengths, qkv, gates, state0 }: DeltaData, slots?: Slots) {
  const S = lengths.length
  const { valueHeads: NV, keyWidth: DK, valueWidth: DV } = dims
  const width = widths(dims)
  const pool = noise((1 + 2 * S) * width.state, 99) // slot 0 and what is written are never read: any numbers will do
  if (state0) pool.set(state0, width.state)
  const tables = tableOperands(
    lengths,
    slots?.from ?? lengths.map((_, i) => (state0 ? 1 + i : 0)),
    slots?.to ?? lengths.map((_, i) => 1 + S + i),
  )
  return {
    counts: tables.counts,
    operands: {
      ...tables.operands,
      qkv: { shape: ['T', width.qkv], data: qkv },
      gates: { shape: ['T', 2 * NV], data: gates },
      state: { shape: ['*', NV, DK, DV], data: pool, kept: true },
    } satisfies Record<string, Operand>,
  }
}

export const deltaCase = (data: DeltaData, form: DeltaForm, slots?: Slots): Case => ({
  ...deltaOperands(data, slots),
  op: ({ qkv, gates, state, segments, chunks }) => ({
    o: deltaRule(qkv!, gates!, state!, { segments: segments!, chunks: chunks! }, data.dims, {
      form,
      parts: 1,
    }),
    state: state!,
  }),
  kernels: form === 'recurrent' ? ['delta_rule'] : ['delta_chunk', 'delta_scan'],
})

/** The states that a case's segments left. */
export const statesAfter = ({ state }: Results, { dims, lengths }: DeltaData): Float32Array =>
  state!.slice((1 + lengths.length) * widths(dims).state)

/** The segments [i, j) of data as data of their own. */
export function part(data: DeltaData, i: number, j: number): DeltaData {
  const sum = (n: number): number => data.lengths.slice(0, n).reduce((a, b) => a + b, 0)
  const { qkv, gates, state } = widths(data.dims)
  const tokens = (values: Float32Array, width: number): Float32Array => values.slice(sum(i) * width, sum(j) * width)
  return {
    dims: data.dims,
    lengths: data.lengths.slice(i, j),
    qkv: tokens(data.qkv, qkv),
    gates: tokens(data.gates, gates),
    state0: data.state0?.slice(i * state, j * state),
  }
}

/** Unit k and scaled q, steps between 0 and 1, and decays from none to strong. */
export function randomDelta(dims: DeltaDims, lengths: readonly number[], seed = 1, withState = false): DeltaData {
  const T = lengths.reduce((a, b) => a + b, 0)
  const { keyHeads: NK, valueHeads: NV, keyWidth: DK } = dims
  const width = widths(dims)
  const gates = noise(T * width.gates, seed + 1)
  for (let t = 0; t < T; t++)
    for (let n = 0; n < NV; n++) {
      gates[t * 2 * NV + n] = -4 * Math.abs(gates[t * 2 * NV + n]!) ** 4
      gates[t * 2 * NV + NV + n] = (1 + gates[t * 2 * NV + NV + n]!) / 2
    }
  return {
    dims,
    lengths,
    qkv: normalised(noise(T * width.qkv, seed), width.qkv, NK, DK),
    gates,
    state0: withState ? noise(lengths.length * width.state, seed + 3) : undefined,
  }
}

/** Rows [q | k | v] of raw heads -> [q^ | k^ | v] as `deltaPrepare` makes them, in double. */
function normalised(raw: Float32Array, width: number, NK: number, DK: number): Float32Array {
  const y = raw.slice()
  for (let t = 0; t < raw.length; t += width)
    for (let head = 0; head < 2 * NK; head++) {
      const row = y.subarray(t + head * DK, t + (head + 1) * DK)
      const scale = 1 / Math.sqrt(row.reduce((s, v) => s + v * v, 1e-6)) / (head < NK ? Math.sqrt(DK) : 1)
      row.set(row.map((v) => v * scale))
    }
  return y
}

const file = fixtureTensors('ops/ops.safetensors')

/** 'gdn.d32.T65.slow', ...: every golden of the fixtures. */
export const goldens: readonly string[] = file.names
  .filter((name) => name.startsWith('gdn.') && name.endsWith('.out'))
  .map((name) => name.slice(0, -'.out'.length))

export interface Golden extends DeltaData {
  readonly out: Float32Array
  readonly state: Float32Array
}

/** A golden: the rows of its batch as segments. */
export function golden(name: string): Golden {
  const get = (field: string) => file.get(`${name}.${field}`)
  const [B, T, heads, width] = get('q').shape as [number, number, number, number]
  const rows = B * T
  const beside = (...parts: Float32Array[]): Float32Array => {
    const each = parts.map((p) => p.length / rows)
    const total = each.reduce((a, b) => a + b, 0)
    const joined = new Float32Array(rows * total)
    for (let t = 0; t < rows; t++) {
      let at = t * total
      parts.forEach((p, i) => {
        joined.set(p.subarray(t * each[i]!, (t + 1) * each[i]!), at)
        at += each[i]!
      })
    }
    return joined
  }
  const raw = beside(get('q').data, get('k').data, get('v').data)
  return {
    dims: { keyHeads: heads, valueHeads: heads, keyWidth: width, valueWidth: width },
    lengths: Array.from({ length: B }, () => T),
    qkv: normalised(raw, 3 * heads * width, heads, width),
    gates: beside(get('g').data, get('beta').data),
    state0: file.names.includes(`${name}.state0`) ? get('state0').data : undefined,
    out: get('out').data,
    state: get('state').data,
  }
}

/** Lengths around the chunk. */
export const lengths: readonly number[] = [1, 5, CHUNK - 1, CHUNK, CHUNK + 1, 130, 256]
