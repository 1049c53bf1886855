import { expect, test } from 'vitest'
import { cpuDevice } from '../../src/device/cpu.ts'
import { Graph } from '../../src/graph/graph.ts'
import { gatherRows } from '../../src/kernels/gather_rows.ts'
import { type Case, noise, runOn, sameOnEveryDevice } from '../check.ts'

const pick = (T: number, width: number, rows: readonly number[]): Case => ({
  operands: {
    x: { shape: ['T', width], data: noise(T * width) },
    index: { shape: ['R'], format: 'u32', data: Uint32Array.from(rows) },
  },
  counts: { T, R: rows.length },
  op: ({ x, index }) => ({ y: gatherRows(x!, index!) }),
  kernels: ['gather_rows'],
  tolerance: 0,
})

test('the twin copies rows', async () => {
  const { y } = await runOn(cpuDevice('test'), pick(4, 3, [2, 2, 0]))
  const x = noise(4 * 3)
  expect([...y!]).toEqual([...x.subarray(6, 9), ...x.subarray(6, 9), ...x.subarray(0, 3)])
})

test.each([
  [1, 1, [0]],
  [5, 7, [4, 0, 4]],
  [300, 1024, [299, 17]],
  [90, 5, Array.from({ length: 80 }, (_, r) => 89 - r)],
] as const)('%i rows of %i are exact on every device', (T, width, rows) => sameOnEveryDevice(pick(T, width, rows)))

test('says what does not fit', () => {
  const graph = new Graph(cpuDevice('test').target)
  const index = graph.input('index', ['R'], 'u32')
  expect(() => gatherRows(graph.input('x', ['T', 2, 8]), index)).toThrow('shape [T,2,8], expected [T,8]')
  expect(() => gatherRows(graph.input('y', ['T', 8]), graph.input('i', ['R'], 'f32'))).toThrow(
    'format f32, expected u32',
  )
})
