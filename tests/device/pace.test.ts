import { expect, test } from 'vitest'
import { pace } from '../../src/device/webgpu/pace.ts'

const costs = (dispatches: number, flops: number) => Array.from({ length: dispatches }, () => ({ flops, bytes: 0 }))
const sizes = (pieces: readonly { from: number; to: number }[]) => pieces.map(({ from, to }) => to - from)

test('a run that is waited for starts early, in growing pieces; another one is sent as a whole', () => {
  const { pieces } = pace(false)
  expect(sizes(pieces(costs(160, 1e6), true))).toEqual([16, 32, 64, 48])
  expect(sizes(pieces(costs(10, 1e6), true))).toEqual([10])
  expect(sizes(pieces(costs(160, 1e6), false))).toEqual([160])
})

test('no piece takes long, waited for or not', () => {
  const { pieces } = pace(false)
  for (const waited of [true, false]) {
    const cut = pieces(costs(8, 40e9), waited) // 40 ms each, as far as is known
    expect(sizes(cut)).toEqual([3, 3, 2])
    expect(cut.map(({ ms }) => ms)).toEqual([120, 120, 80])
  }
})
