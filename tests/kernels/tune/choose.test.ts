import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { LinearPlan } from '../../../src/graph/target.ts'
import { choosePlan, isWorth, meanRatio, type Timed } from '../../../src/kernels/tune/choose.ts'

const heights = [32, 64, 256, 1024]
const timed = (SK: number, BM: number, ...ms: number[]): Timed => ({
  plan: { variant: 'linear_matrix', order: { SK, BK: 32 }, heights: [{ tile: { BM } }] },
  ms,
})
const at = ({ heights }: LinearPlan, rows: number) => heights.find(({ upTo = 1 / 0 }) => rows <= upTo)!.tile

describe('the plan', () => {
  test('has one order, that which is best over the heights together', () => {
    const plan = choosePlan(heights, [
      timed(1, 32, 1, 1, 8, 8),
      timed(1, 128, 4, 4, 4, 4),
      timed(2, 32, 1.1, 1.1, 4, 9),
      timed(2, 128, 9, 9, 3, 2), // with the line above by far the better pair, though not the best at 32 rows
    ])!
    expect(plan.order).toEqual({ SK: 2, BK: 32 })
    expect(plan.heights).toEqual([{ upTo: 128, tile: { BM: 32 } }, { tile: { BM: 128 } }])
  })

  test('takes a further tile only where it earns its pipeline', () => {
    const small = choosePlan(heights, [timed(1, 32, 1, 1, 1, 1.02), timed(1, 64, 2, 2, 2, 1)])!
    expect(small.heights).toEqual([{ tile: { BM: 32 } }])
    const large = choosePlan(heights, [timed(1, 32, 1, 1, 1, 1.05), timed(1, 64, 2, 2, 2, 1)])!
    expect(large.heights).toEqual([{ upTo: 512, tile: { BM: 32 } }, { tile: { BM: 64 } }])
  })

  test('leaves out what failed, and there is none where nothing ran', () => {
    const none = Number.POSITIVE_INFINITY
    expect(choosePlan(heights, [timed(1, 32, none, none, none, none), timed(1, 64, 2, 2, 2, 2)])!.heights).toEqual([
      { tile: { BM: 64 } },
    ])
    expect(choosePlan(heights, [timed(1, 32, 1, 1, 1, none)])).toBe(undefined)
    expect(choosePlan(heights, [timed(1, 32, 1, 1, none, none), timed(2, 32, none, none, 1, 1)])).toBe(undefined)
    expect(choosePlan(heights, [])).toBe(undefined)
  })

  const table = fc.uniqueArray(
    fc.record({
      SK: fc.constantFrom(1, 2, 4),
      BM: fc.constantFrom(16, 32, 64, 128),
      ms: fc.array(fc.double({ min: 0.01, max: 10, noNaN: true }), { minLength: 4, maxLength: 4 }),
    }),
    { minLength: 1, maxLength: 12, selector: ({ SK, BM }) => `${SK} ${BM}` },
  )

  test('no order with any one tile at all heights, or with any tile at each, would do better', () => {
    fc.assert(
      fc.property(table, (all) => {
        const plan = choosePlan(
          heights,
          all.map(({ SK, BM, ms }) => timed(SK, BM, ...ms)),
        )!
        const msOf = (SK: number, BM: number, h: number) => all.find((r) => r.SK === SK && r.BM === BM)!.ms[h]!
        /** The sum of the logarithms of the times, and what further tiles have to earn. */
        const loss = (SK: number, BMs: readonly number[]) =>
          BMs.reduce(
            (sum, BM, h) => sum + Math.log(msOf(SK, BM, h)) + (h > 0 && BM !== BMs[h - 1] ? Math.log(1.03) : 0),
            0,
          )
        const chosen = heights.map((rows) => at(plan, rows).BM!)
        const got = loss(plan.order.SK, chosen)
        for (const SK of new Set(all.map((r) => r.SK))) {
          const tiles = all.filter((r) => r.SK === SK).map(({ BM }) => BM)
          for (const a of tiles)
            for (const b of tiles)
              for (const c of tiles)
                for (const d of tiles) expect(got).toBeLessThanOrEqual(loss(SK, [a, b, c, d]) + 1e-9)
        }
      }),
      { numRuns: 200 },
    )
  })

  test('is a rule as the table wants it: heights ascend, and the last is for all that are more', () => {
    fc.assert(
      fc.property(table, (rows) => {
        const plan = choosePlan(
          heights,
          rows.map(({ SK, BM, ms }) => timed(SK, BM, ...ms)),
        )!
        const ends = plan.heights.map(({ upTo = Number.POSITIVE_INFINITY }) => upTo)
        expect(ends).toEqual([...new Set(ends)].sort((a, b) => a - b))
        expect(ends.at(-1)).toBe(Number.POSITIVE_INFINITY)
        for (const [i, { tile }] of plan.heights.entries()) if (i) expect(tile).not.toEqual(plan.heights[i - 1]!.tile)
      }),
    )
  })
})

test('what is there is left for more than noise', () => {
  expect(isWorth([1, 1], [1.005, 1.01])).toBe(false)
  expect(isWorth([1, 1], [1, 1.05])).toBe(true)
  expect(isWorth([1, 1], [1, Number.POSITIVE_INFINITY])).toBe(true)
  expect(meanRatio([1, 2], [2, 4])).toBeCloseTo(2)
  expect(meanRatio([1, 1], [4, 1])).toBeCloseTo(2)
})
