import { expect, test } from 'vitest'
import { cpuDevice } from '../../src/device/cpu.ts'
import { Graph } from '../../src/graph/graph.ts'
import { ALSO, embedding } from '../../src/kernels/embedding.ts'
import { type Case, noise, runOn, sameOnEveryDevice } from '../check.ts'

const ids = Uint32Array.of(3, 0, 5, 5, 1)
const lookup = (width: number, format: 'f32' | 'f16' | 'bf16'): Case => ({
  operands: { ids: { shape: ['T'], format: 'u32', data: ids }, table: { shape: [6, width], format, kept: true } },
  counts: { T: ids.length },
  op: ({ ids, table }) => ({ y: embedding(ids!, table!) }),
  kernels: ['embedding'],
  tolerance: 0,
})

test('the twin copies rows', async () => {
  const table = noise(6 * 8)
  const c = lookup(8, 'f32')
  const operands = { ...c.operands, table: { shape: [6, 8], data: table } }
  const { y } = await runOn(cpuDevice('test'), { ...c, operands })
  expect([...y!]).toEqual([...ids].flatMap((id) => [...table.subarray(id * 8, id * 8 + 8)]))
})

test.each(['f32', 'f16', 'bf16'] as const)('a table of %s is exact on every device', async (format) => {
  for (const width of [8, 40, 1024]) await sameOnEveryDevice(lookup(width, format))
})

test('the table may be the rows of a request', () =>
  sameOnEveryDevice({
    operands: {
      ids: { shape: ['T'], format: 'u32', data: Uint32Array.from({ length: 70 }, (_, t) => 69 - t) },
      table: { shape: ['T', 16] },
    },
    counts: { T: 70 },
    op: ({ ids, table }) => ({ y: embedding(ids!, table!) }),
    tolerance: 0,
  }))

test.each(['f32', 'bf16'] as const)('rows of a pool beside a table of %s', async (format) => {
  const [width, also] = [16, noise(4 * 16, 9)]
  const c: Case = {
    operands: {
      ids: { shape: ['T'], format: 'u32', data: Uint32Array.of(1, ALSO + 3, ALSO, 0) },
      table: { shape: [2, width], format, kept: true },
      also: { shape: ['*', width], data: also, kept: true },
    },
    counts: { T: 4 },
    op: ({ ids, table, also }) => ({ y: embedding(ids!, table!, also!) }),
    tolerance: 0,
  }
  const { y } = await runOn(cpuDevice('test'), c)
  expect(y!.subarray(width, 3 * width)).toEqual(
    Float32Array.of(...also.subarray(3 * width), ...also.subarray(0, width)),
  )
  await sameOnEveryDevice(c)
})

test('says what does not fit', () => {
  const graph = new Graph(cpuDevice('test').target)
  const tokens = graph.input('ids', ['T'], 'u32')
  expect(() => embedding(tokens, graph.input('odd', [9, 12]))).toThrow('12 columns, expected a multiple of 8')
  expect(() => embedding(graph.input('floats', ['T']), graph.input('table', [9, 16]))).toThrow(
    'format f32, expected u32',
  )
  expect(() => embedding(tokens, graph.input('sixteen', [9, 16]), graph.input('also', ['*', 8]))).toThrow(
    'shape [*,8], expected [*,16]',
  )
  expect(() => embedding(tokens, graph.input('cube', [9, 2, 16]))).toThrow('shape [9,2,16], expected [9,16]')
})
