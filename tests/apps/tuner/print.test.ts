import { expect, test } from 'vitest'
import { printProgress, printTuned, printTunings } from '../../../src/apps/tuner/print.ts'
import { productsOf, publishedProducts } from '../../../src/apps/tuner/products.ts'
import type { LinearRule } from '../../../src/graph/target.ts'
import type { Tuned } from '../../../src/kernels/tune/tune_product.ts'

const product = { name: '2B down', N: 2048, K: 6144, use: 'parts' } as const
const rule: LinearRule = {
  ...{ on: 'matrix', N: 2048, K: 6144, variant: 'linear_matrix', order: { SK: 4, BK: 32 } },
  heights: [{ upTo: 45, tile: { BM: 32, BN: 64 } }, { tile: { BM: 64, BN: 128 } }],
}
const height = (rows: number, ms: number, plan: string) => {
  return { rows, ms, plan, builtinPlan: 'linear_matrix SK1', builtinMs: 0.02 }
}
const tuned: Tuned = {
  ...{ product, rule, builtin: false, tried: 96 },
  heights: [height(32, 0.01, 'linear_matrix SK4'), height(64, 0.02, 'linear_matrix SK1')],
  failed: [{ plan: 'linear_tiled BM64', reason: 'its numbers are off' }],
  slow: [],
}

test('what was found: the rule, each height with the built-in plan beside it, and what was skipped', () => {
  expect(printTuned(tuned)).toBe(
    [
      '2B down, 2048 x 6144: linear_matrix SK4 BK32, 1.41x as fast as the built-in plan (96 plans tried)',
      '    32 rows  0.0100 ms   80.5 TFLOP/s  linear_matrix SK4  built-in 0.0200 ms, 2.00x  linear_matrix SK1',
      '    64 rows  0.0200 ms   80.5 TFLOP/s  linear_matrix SK1',
      '  skipped linear_tiled BM64: its numbers are off',
      '',
    ].join('\n'),
  )
  expect(printTuned({ ...tuned, builtin: true })).toContain('BK32, the built-in plan stays (')
})

test('how far it is', () => {
  expect(printProgress({ product, index: 2, of: 16, phase: 'measuring', done: 3, total: 40 })).toBe(
    '3 of 16: 2B down, measuring 3 of 40 plans',
  )
})

test('what is kept', () => {
  expect(printTunings({ 'nvidia h200': { date: '2026-11-30', rules: [rule] } })).toBe(
    'nvidia h200: tuned 2026-11-30\n' +
      '  matrix 2048 x 6144: linear_matrix SK4 BK32; to 45 rows BM32 BN64, above BM64 BN128\n',
  )
  expect(printTunings({})).toBe('nothing is tuned here\n')
})

test('the products of the published models, and of a checkpoint', async () => {
  const published = publishedProducts()
  expect(published).toHaveLength(12)
  expect(published).toContainEqual(product)
  expect(published).toContainEqual({ name: '0.8B gate up', N: 7168, K: 1024, use: 'swiglu' })
  expect(published).toContainEqual({ name: '2B delta in', N: 8224, K: 2048, use: 'store' })
  const nano = await productsOf('public/models/decider-nano')
  expect(nano.map(({ N, K, use }) => [N, K, use])).toEqual([
    [1028, 256, 'store'],
    [256, 256, 'parts'],
    [1536, 256, 'store'],
    [256, 512, 'parts'],
    [1024, 256, 'swiglu'],
    [256, 512, 'parts'],
    [128, 768, 'store'], // of its vision tower
    [384, 128, 'store'],
    [128, 128, 'parts'],
    [256, 128, 'store'],
    [128, 256, 'parts'],
    [512, 512, 'store'],
    [256, 512, 'store'],
  ])
  await expect(productsOf('no/such/folder')).rejects.toThrow('no/such/folder')
})
