import { describe, expect, test } from 'vitest'
import { cpuDevice } from '../../src/device/cpu.ts'
import { Graph } from '../../src/graph/graph.ts'
import type { Format } from '../../src/graph/tensor.ts'
import { codeEmbedding, NO_COLUMN } from '../../src/kernels/code_embedding.ts'
import { type Case, runOn, sameOnEveryDevice } from '../check.ts'

const grid = Uint32Array.from({ length: 5 * 3 }, (_, i) => (i * 7) % 10) // 5 columns of 3 books of 10 codes
const columns = Uint32Array.of(4, NO_COLUMN, 0, 0, 2)

const embedCase = (width: number, format: Format, into: boolean): Case => ({
  operands: {
    grid: { shape: ['*', 3], format: 'u32', data: grid, kept: true },
    columns: { shape: ['T'], format: 'u32', data: into ? columns : columns.with(1, 3) },
    table: { shape: [30, width], format, kept: true },
    into: { shape: ['T', width] },
  },
  counts: { T: 5 },
  op: (t) => ({ y: codeEmbedding(t.grid!, t.columns!, t.table!, into ? t.into! : undefined) }),
  tolerance: 1e-6,
  kernels: ['code_embedding'],
})

describe('is the same on every device', () => {
  test.each([
    [8, 'f32', false],
    [136, 'f16', false],
    [64, 'bf16', true],
  ] as const)('rows of %i, %s tables, into rows that are there: %s', (width, format, into) =>
    sameOnEveryDevice(embedCase(width, format, into)),
  )
})

test('a row is the sum of a row of each book; a row without a column stays', async () => {
  const table = Float32Array.from({ length: 30 * 8 }, (_, i) => 100 ** Math.floor(i / 80) * (Math.floor(i / 8) % 10))
  const c = embedCase(8, 'f32', true)
  const stays = new Float32Array(5 * 8).fill(-1)
  const operands = {
    ...c.operands,
    table: { ...c.operands.table!, data: table },
    into: { shape: ['T', 8], data: stays },
  }
  const { y } = await runOn(cpuDevice('test'), { ...c, operands: operands as Case['operands'] })
  const sum = (column: number) => [0, 1, 2].reduce((s, k) => s + 100 ** k * grid[column * 3 + k]!, 0)
  expect([0, 1, 2, 3, 4].map((t) => y![t * 8])).toEqual([sum(4), -1, sum(0), sum(0), sum(2)])
})

test('says what does not fit', () => {
  const graph = new Graph(cpuDevice('test').target)
  const [g, t] = [graph.input('grid', ['*', 3], 'u32'), graph.input('columns', ['T'], 'u32')]
  expect(() => codeEmbedding(g, t, graph.input('a', [30, 12]))).toThrow('12 columns, expected a multiple of 8')
  expect(() => codeEmbedding(g, t, graph.input('b', [31, 8]))).toThrow('31 rows, expected as many for each of 3 books')
  expect(() => codeEmbedding(g, t, graph.input('c', [30, 8]), graph.input('into', ['T', 16]))).toThrow(
    'into (into) has shape [T,16], expected [T,8]',
  )
})
