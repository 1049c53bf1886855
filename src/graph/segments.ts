import { ShapeError } from '../errors.ts'
import type { Counts, Shape } from './tensor.ts'

/**
 * A row of tokens in a run. It continues from state slot `from` (0: a fresh row) and leaves its state in slot `to`
 * (0: nobody continues; never a slot that this run reads). Its tokens attend to `prefixLength` cache rows from
 * `prefixStart` on, then to its own from `kvStart` on, of which earlier runs wrote the first `kvBefore`.
 */
export interface Segment {
  readonly length: number
  readonly from: number
  readonly to: number
  readonly prefixStart: number
  readonly prefixLength: number
  readonly kvStart: number
  readonly kvBefore: number
}

/** Tokens that the chunked delta rule takes at once; chunks are counted from each segment's start. */
export const CHUNK = 64

/** Shapes of the tables that ops over segments read. */
export const tableShapes = { segments: ['S', 8], segmentOf: ['T'], chunks: ['C', 2] } as const satisfies Record<
  string,
  Shape
>

export interface SegmentTables {
  readonly counts: Counts
  readonly segments: Uint32Array // [S, 8]: start, then the fields of Segment in order
  readonly segmentOf: Uint32Array // [T]: the segment of each token
  readonly chunks: Uint32Array // [C, 2]: segment, first token
}

/** The tables of a run; `rows` is the number of rows read back. */
export function segmentTables(segments: readonly Segment[], rows: number): SegmentTables {
  expectDisjoint(segments)
  const tokens = segments.reduce((n, s) => n + s.length, 0)
  const table = new Uint32Array(segments.length * 8)
  const segmentOf = new Uint32Array(tokens)
  const chunks: number[] = []
  let start = 0
  segments.forEach((s, i) => {
    table.set([start, s.length, s.from, s.to, s.prefixStart, s.prefixLength, s.kvStart, s.kvBefore], i * 8)
    segmentOf.fill(i, start, start + s.length)
    for (let t = 0; t < s.length; t += CHUNK) chunks.push(i, start + t)
    start += s.length
  })
  const counts = { T: tokens, S: segments.length, C: chunks.length / 2, R: rows }
  return { counts, segments: table, segmentOf, chunks: Uint32Array.from(chunks) }
}

/** A slot that is written in this run is neither read nor written by another segment, nor are its cache rows. */
function expectDisjoint(segments: readonly Segment[]): void {
  const read = new Set(segments.map((s) => s.from))
  const written = new Set<number>()
  for (const s of segments) {
    if (!(s.length > 0)) throw new ShapeError(`segments: a segment has length ${s.length}, expected at least 1`)
    if (s.to === 0) continue
    if (read.has(s.to) || written.has(s.to))
      throw new ShapeError(`segments: state slot ${s.to} is written and used twice in one run`)
    written.add(s.to)
  }
  const ranges = segments.map((s) => [s.kvStart + s.kvBefore, s.kvStart + s.kvBefore + s.length] as const)
  ranges.sort((a, b) => a[0] - b[0])
  ranges.forEach(([begin], i) => {
    const before = ranges[i - 1]
    if (before && begin < before[1]) throw new ShapeError(`segments: cache row ${begin} is written twice in one run`)
  })
}
