import { expect, test } from 'vitest'
import { pace } from '../../src/device/webgpu/pace.ts'

const jobs = (dispatches: number, flops: number) =>
  Array.from({ length: dispatches }, () => ({ cost: { flops, bytes: 0 } }))
/** Dispatches of each submit. */
const sizes = (dispatches: number, flops: number, waited: boolean) =>
  [...pace(false).pieces(jobs(dispatches, flops), waited)].map((piece) => piece.jobs.length)

test('a run that is waited for starts early, in growing pieces; another one is sent as a whole', () => {
  expect(sizes(160, 1e6, true)).toEqual([16, 32, 64, 48])
  expect(sizes(10, 1e6, true)).toEqual([10])
  expect(sizes(160, 1e6, false)).toEqual([160])
})

test('the last piece says so, also where it is the first, or full', () => {
  for (const dispatches of [0, 10, 16, 17, 48])
    expect([...pace(false).pieces(jobs(dispatches, 1e6), true)].map(({ isLast }) => isLast).reverse()).toEqual(
      [true, false, false].slice(0, dispatches > 16 ? 2 : 1),
    )
})

test('a piece is there before the next one is looked at', () => {
  let seen = 0
  const counted = (function* () {
    for (const job of jobs(100, 1e6)) {
      seen++
      yield job
    }
  })()
  for (const { isLast } of pace(false).pieces(counted, true)) {
    if (isLast) break
    expect([17, 49]).toContain(seen) // one more than is sent tells that it is not the last
  }
  expect(seen).toBe(100)
})

test('no piece takes long, waited for or not', () => {
  for (const waited of [true, false]) {
    expect(sizes(8, 40e9, waited)).toEqual([3, 3, 2]) // 40 ms each, as far as is known
    expect([...pace(false).pieces(jobs(8, 40e9), waited)].map(({ ms }) => ms)).toEqual([120, 120, 80])
  }
})

test('what a run took corrects what the next ones are thought to take, at most twice at a time', () => {
  const p = pace(false)
  const thought = (): number => [...p.pieces(jobs(1, 40e9), true)][0]!.ms
  p.learn(30, thought())
  expect(thought()).toBeCloseTo(30)
  p.learn(300, thought())
  expect(thought()).toBeCloseTo(60)
  p.learn(1e-3, 1) // too short to tell
  expect(thought()).toBeCloseTo(60)
})
