import { expect, test } from 'vitest'
import { cpuDevice } from '../../src/device/cpu.ts'
import { Graph } from '../../src/graph/graph.ts'
import { scatterRows } from '../../src/kernels/scatter_rows.ts'
import { type Case, noise, runOn, sameOnEveryDevice } from '../check.ts'

const put = (width: number, rows: readonly number[], format: 'f32' | 'f16' = 'f32'): Case => ({
  operands: {
    x: { shape: ['R', width], data: noise(rows.length * width, 5), format },
    index: { shape: ['R'], format: 'u32', data: Uint32Array.from(rows) },
    y: { shape: ['*', width], data: new Float32Array(80 * width), kept: true },
  },
  counts: { T: rows.length, R: rows.length },
  op: ({ x, index, y }) => ({ y: scatterRows(x!, index!, y!) }),
  kernels: ['scatter_rows'],
  tolerance: 0,
})

test('the twin copies rows, and leaves the others', async () => {
  const { y } = await runOn(cpuDevice('test'), put(3, [2, 0]))
  const x = noise(2 * 3, 5)
  expect([...y!.subarray(0, 12)]).toEqual([...x.subarray(3), 0, 0, 0, ...x.subarray(0, 3), 0, 0, 0])
})

test.each([
  [1, [0]],
  [7, [4, 0, 79]],
  [1024, [29, 17]],
] as const)('rows of %i are exact on every device', (width, rows) => sameOnEveryDevice(put(width, rows)))

test('rows of halves are exact on every device', () => sameOnEveryDevice(put(8, [3, 1], 'f16')))

test('says what does not fit', () => {
  const graph = new Graph(cpuDevice('test').target)
  const [x, index] = [graph.input('x', ['R', 8]), graph.input('index', ['R'], 'u32')]
  expect(() => scatterRows(x, index, graph.input('narrow', ['*', 4]))).toThrow('shape [*,4], expected [*,8]')
  expect(() => scatterRows(x, graph.input('short', ['S'], 'u32'), graph.input('y', ['*', 8]))).toThrow('expected [R]')
})
