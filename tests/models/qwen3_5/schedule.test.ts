import { expect, test } from 'vitest'
import { schedule } from '../../../src/models/qwen3_5/schedule.ts'

const row = (n: number) => ({ ids: Array.from({ length: n }, () => 1), slots: [n - 1] })

test('short rows share a run, in order, each with its own cache rows', () => {
  const { runs, kvRows } = schedule([row(3), row(60), row(2)], [128])
  expect(runs.map((r) => r.tokens)).toEqual([65])
  expect(runs[0]!.pieces.map((p) => p.segment.kvStart)).toEqual([0, 3, 63])
  expect(kvRows).toBe(65)
})

test('rows that do not fit start the next run, which uses the cache rows again', () => {
  const { runs, kvRows } = schedule([row(100), row(100)], [128])
  expect(runs.map((r) => r.tokens)).toEqual([100, 100])
  expect(runs.map((r) => r.pieces[0]!.segment.kvStart)).toEqual([0, 0])
  expect(kvRows).toBe(100)
})

test('a long row becomes runs that hand on their state at multiples of the chunk', () => {
  const { runs, kvRows } = schedule([row(5), row(500), row(5)], [200])
  expect(runs.map((r) => r.tokens)).toEqual([5, 192, 192, 116, 5])
  const long = runs.slice(1, 4).map((r) => r.pieces[0]!.segment)
  expect(long.map((s) => [s.from, s.to, s.kvStart, s.kvBefore])).toEqual([
    [0, 1, 0, 0],
    [1, 2, 0, 192],
    [2, 0, 0, 384],
  ])
  expect(kvRows).toBe(500)
})

test('a row goes on behind a snapshot and leaves one', () => {
  const after = { slot: 7, kvStart: 300, length: 64 }
  const { runs, kvRows } = schedule([{ ...row(10), after, keep: { slot: 9, kvStart: 400 } }], [128])
  expect(runs[0]!.pieces[0]!.segment).toEqual({
    length: 10,
    from: 7,
    to: 9,
    prefixStart: 300,
    prefixLength: 64,
    kvStart: 400,
    kvBefore: 0,
  })
  expect(kvRows).toBe(410)
})

test('runs may begin small: each has its own limit, and the last one is for all that follow', () => {
  const sizes = (lengths: number[], most: number[]) => schedule(lengths.map(row), most).runs.map((r) => r.tokens)
  expect(sizes([40, 60, 60, 100, 300], [64, 128, 256])).toEqual([40, 120, 100, 256, 44])
  expect(sizes([500, 5], [64, 192])).toEqual([64, 192, 192, 52, 5])
})
