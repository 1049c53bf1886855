import { type Segment, segmentTables, tableShapes } from '../../src/graph/segments.ts'
import { type Attention, attention } from '../../src/kernels/attention.ts'
import { gatherRows } from '../../src/kernels/gather_rows.ts'
import { linear } from '../../src/kernels/linear.ts'
import { type Case, noise } from '../check.ts'
import { fixtureTensors } from '../fixtures.ts'

export type Options = Omit<Attention, 'gate'>

export interface Given {
  readonly q?: Float32Array
  readonly kv?: Float32Array
  /** Packed projection, or true for noise. */
  readonly gate?: Float32Array | true
  readonly cache?: 'f32' | 'f16'
  readonly tolerance?: number
}

/** A row without prefix whose cache rows begin at kvStart. */
export const row = (length: number, kvStart: number, more: Partial<Segment> = {}): Segment => ({
  ...{ from: 0, to: 0, prefixStart: 0, prefixLength: 0, kvBefore: 0 },
  ...more,
  length,
  kvStart,
})

export const gateWidth = ({ heads, kvHeads, headDim }: Options): number => 2 * (heads + kvHeads) * headDim

/** Rows of a test that together cover a prefix, a fork, a decoded token and more than one chunk. */
export const rows: readonly Segment[] = [
  row(3, 40),
  row(1, 50, { kvBefore: 17 }),
  row(70, 70, { prefixStart: 2, prefixLength: 13 }),
  row(2, 150, { prefixStart: 2, prefixLength: 13, kvBefore: 5 }),
]

export function caseOf(options: Options, segments: readonly Segment[], given: Given = {}): Case {
  const { heads, kvHeads, headDim } = options
  const { counts, ...tables } = segmentTables(segments, 1)
  const poolRows = Math.max(...segments.map((s) => s.kvStart + s.kvBefore + s.length))
  const width = 2 * kvHeads * headDim
  const gate = given.gate && {
    gate: { shape: ['T', gateWidth(options)] as const, ...(given.gate !== true && { data: given.gate }) },
  }
  return {
    operands: {
      q: { shape: ['T', heads * headDim], data: given.q ?? noise(counts.T * heads * headDim, 1).map((v) => 4 * v) },
      kv: {
        ...{ shape: ['*', width], kept: true, format: given.cache ?? 'f32' },
        data: given.kv ?? noise(poolRows * width, 2),
      },
      segments: { shape: tableShapes.segments, format: 'u32', data: tables.segments },
      chunks: { shape: tableShapes.chunks, format: 'u32', data: tables.chunks },
      ...gate,
    },
    counts,
    op: (t) => ({
      y: attention(
        t.q!,
        t.kv!,
        { segments: t.segments!, chunks: t.chunks! },
        { ...options, ...(t.gate && { gate: t.gate }) },
      ),
    }),
    tolerance: given.tolerance ?? 1e-5,
  }
}

/** Queries, gate, cache and results in half precision; the last results are read through gather_rows. */
export function halfCase(options: Options): Case {
  const c = caseOf(options, rows, { cache: 'f16' })
  const T = c.counts!.T!
  return {
    ...c,
    operands: {
      ...c.operands,
      gates: { shape: [gateWidth(options), options.heads * options.headDim], kept: true },
      index: { shape: ['R'], format: 'u32', data: Uint32Array.of(0, 3, T - 1) },
    },
    counts: { ...c.counts, R: 3 },
    op: ({ q, kv, segments, chunks, gates, index }) => {
      const gate = linear(q!, gates!, { format: 'f16' })
      const tables = { segments: segments!, chunks: chunks! }
      const half = attention(q!, kv!, tables, { ...options, gate, format: 'f16' })
      return { y: gatherRows(attention(half, kv!, tables, { ...options, gate, format: 'f16' }), index!) }
    },
    tolerance: 4e-3, // as for the f16 cache alone, which costs most
  }
}

const ops = fixtureTensors('ops/ops.safetensors')

/** PyTorch's answers: [name, case, want]. */
export const goldens = ops.names.flatMap((name) => {
  const [, stem, h, kv, d, t] = /^(attn\.h(\d+)_kv(\d+)_d(\d+)_T(\d+))\.q$/.exec(name) ?? []
  if (!stem) return []
  const [heads, kvHeads, headDim, T] = [Number(h), Number(kv), Number(d), Number(t)]
  const get = (what: string) => ops.get(`${stem}.${what}`).data
  const [q, k, v] = [get('q'), get('k'), get('v')]
  const half = kvHeads * headDim
  const pool = new Float32Array((T + 1) * 2 * half)
  for (let n = 0; n < T; n++) {
    pool.set(k.subarray(n * half, (n + 1) * half), (n + 1) * 2 * half)
    pool.set(v.subarray(n * half, (n + 1) * half), (2 * n + 3) * half)
  }
  const options = { heads, kvHeads, headDim }
  const last = q.subarray((T - 1) * heads * headDim)
  return [
    { name: `${stem}.causal`, options, rows: [row(T, 1)], q, kv: pool, want: get('causal') },
    { name: `${stem}.full`, options: { ...options, causal: false }, rows: [row(T, 1)], q, kv: pool, want: get('full') },
    {
      ...{ name: `${stem}.decode_last`, options, rows: [row(1, 1, { kvBefore: T - 1 })] },
      ...{ q: last, kv: pool, want: get('decode_last') },
    },
  ]
})

export const published: Options = { heads: 8, kvHeads: 2, headDim: 256 }
export const small: Options = { heads: 4, kvHeads: 2, headDim: 64 }
