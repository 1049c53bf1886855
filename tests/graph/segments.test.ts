import { expect, test } from 'vitest'
import { type Segment, segmentTables } from '../../src/graph/segments.ts'

const segment = (length: number, rest: Partial<Segment> = {}): Segment => ({
  length,
  from: 0,
  to: 0,
  prefixStart: 0,
  prefixLength: 0,
  kvStart: 0,
  kvBefore: 0,
  ...rest,
})

test('tables of a ragged run', () => {
  const t = segmentTables([segment(2, { to: 3 }), segment(130, { from: 5, kvStart: 100, kvBefore: 7 })], 4)
  expect(t.counts).toEqual({ T: 132, S: 2, C: 4, R: 4 })
  expect([...t.segments]).toEqual([0, 2, 0, 3, 0, 0, 0, 0, 2, 130, 5, 0, 0, 0, 100, 7])
  expect([...t.segmentOf.subarray(0, 4)]).toEqual([0, 0, 1, 1])
  expect([...t.chunks]).toEqual([0, 0, 1, 2, 1, 66, 1, 130])
})

test('a run that would race is refused', () => {
  expect(() => segmentTables([segment(1, { from: 4 }), segment(1, { to: 4, kvStart: 9 })], 1)).toThrow('state slot 4')
  expect(() => segmentTables([segment(1, { to: 4 }), segment(1, { to: 4, kvStart: 9 })], 1)).toThrow('state slot 4')
  expect(() => segmentTables([segment(3), segment(1, { kvStart: 2 })], 1)).toThrow('cache row 2 is written twice')
  expect(() => segmentTables([segment(0)], 1)).toThrow('length 0')
})
