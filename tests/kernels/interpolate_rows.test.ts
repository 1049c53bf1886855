import { expect, test } from 'vitest'
import { cpuDevice } from '../../src/device/cpu.ts'
import { Graph } from '../../src/graph/graph.ts'
import { interpolateRows } from '../../src/kernels/interpolate_rows.ts'
import { type Case, noise, runOn, sameOnEveryDevice } from '../check.ts'

const between = (T: number, N: number, width: number): Case => ({
  operands: {
    x: { shape: ['T', width] },
    table: { shape: [N, width], kept: true },
    taps: { shape: ['T', 4], format: 'u32', data: Uint32Array.from({ length: 4 * T }, (_, i) => (7 * i) % N) },
    weights: { shape: ['T', 4], data: noise(4 * T, 3) },
  },
  counts: { T },
  op: ({ x, table, taps, weights }) => ({ y: interpolateRows(x!, table!, { taps: taps!, weights: weights! }) }),
  kernels: ['interpolate_rows'],
})

test('the twin adds four weighted rows', async () => {
  const c = between(1, 3, 4)
  const { y } = await runOn(cpuDevice('test'), {
    ...c,
    operands: {
      x: { shape: ['T', 4], data: Float32Array.of(100, 200, 300, 400) },
      table: { shape: [3, 4], data: Float32Array.of(1, 2, 3, 4, 10, 20, 30, 40, 0, 0, 8, 0) },
      taps: { shape: ['T', 4], format: 'u32', data: Uint32Array.of(0, 1, 2, 2) },
      weights: { shape: ['T', 4], data: Float32Array.of(0.5, 0.25, 0.125, 0.125) },
    },
  })
  expect([...y!]).toEqual([103, 206, 311, 412])
})

test.each([
  [1, 4, 4],
  [9, 50, 20],
  [70, 16, 1024],
])('%i rows among %i of %i are the same on every device', (T, N, width) => sameOnEveryDevice(between(T, N, width)))

test('says what does not fit', () => {
  const graph = new Graph(cpuDevice('test').target)
  const given = { taps: graph.input('taps', ['T', 4], 'u32'), weights: graph.input('weights', ['T', 4]) }
  const [x, table] = [graph.input('x', ['T', 8]), graph.input('table', [9, 8])]
  expect(() => interpolateRows(x, graph.input('narrow', [9, 4]), given)).toThrow('shape [9,4], expected [9,8]')
  expect(() => interpolateRows(x, table, { ...given, weights: graph.input('two', ['T', 2]) })).toThrow('expected [T,4]')
  const [odd, oddTable] = [graph.input('odd', ['T', 6]), graph.input('odd table', [9, 6])]
  expect(() => interpolateRows(odd, oddTable, given)).toThrow('6 columns, expected a multiple of 4')
})
