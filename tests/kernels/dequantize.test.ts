import { describe, expect, test } from 'vitest'
import { cpuDevice, cpuTarget } from '../../src/device/cpu.ts'
import { Graph } from '../../src/graph/graph.ts'
import { dequantize } from '../../src/kernels/dequantize.ts'
import { gatherRows } from '../../src/kernels/gather_rows.ts'
import { type Case, gpu, runOn, sameOnEveryDevice } from '../check.ts'

const book = (N: number, D: number, C: number) => ({
  codebook: { shape: [N, D], kept: true },
  out: { shape: [C, D, 1], kept: true },
  bias: { shape: [C], kept: true },
})

test('by hand: added to, and taken from', async () => {
  const c: Case = {
    operands: {
      codes: { shape: ['T'], format: 'u32', data: Uint32Array.of(1, 0) },
      codebook: { shape: [2, 2], data: Float32Array.of(1, 2, 3, 4) },
      out: { shape: [1, 2, 1], data: Float32Array.of(10, 100) },
      bias: { shape: [1], data: Float32Array.of(0.5) },
      base: { shape: ['T', 1], data: Float32Array.of(1000, 2000) },
    },
    counts: { T: 2 },
    op({ codes, codebook, out, bias, base }) {
      const q = { codebook: codebook!, out: out!, bias: bias! }
      const [alone, added] = [dequantize(codes!, q), dequantize(codes!, q, { add: base! })]
      return { alone, added, taken: dequantize(codes!, q, { from: base! }) }
    },
  }
  for (const device of [cpuDevice('test'), await gpu()]) {
    const { alone, added, taken } = await runOn(device, c)
    expect([...alone!]).toEqual([430.5, 210.5])
    expect([...added!]).toEqual([1430.5, 2210.5])
    expect([...taken!]).toEqual([569.5, 1789.5])
  }
})

describe('is the same on every device', () => {
  test.each([
    [1, 1024, 8, 128],
    [65, 9, 5, 33],
  ])('%i rows, %i codes of width %i, %i channels', (T, N, D, C) =>
    sameOnEveryDevice({
      operands: {
        codes: { shape: ['T'], format: 'u32', data: Uint32Array.from({ length: T }, (_, t) => (t * 7 + 3) % N) },
        ...book(N, D, C),
        base: { shape: ['T', C] },
      },
      counts: { T },
      op: ({ codes, codebook, out, bias, base }) => {
        const q = { codebook: codebook!, out: out!, bias: bias! }
        return { y: dequantize(codes!, q, { from: dequantize(codes!, q, { add: base! }) }) }
      },
      kernels: ['dequantize', 'dequantize'],
    }),
  )

  test('half-precision values', () =>
    sameOnEveryDevice({
      operands: {
        codes: { shape: ['T'], format: 'u32', data: Uint32Array.of(4, 0, 2) },
        ...book(5, 8, 24),
        index: { shape: ['R'], format: 'u32', data: Uint32Array.of(2, 0) },
      },
      counts: { T: 3, R: 2 },
      op: ({ codes, codebook, out, bias, index }) => {
        const q = { codebook: codebook!, out: out!, bias: bias! }
        return { y: gatherRows(dequantize(codes!, q, { format: 'f16' }), index!) }
      },
      tolerance: 1e-3, // f16 rounds by 2^-11
    }))
})

test('says what does not fit', () => {
  const graph = new Graph(cpuTarget)
  const input = (name: string, shape: (number | 'T')[], format: 'f32' | 'u32' = 'f32') =>
    graph.input(name, shape, format)
  const q = { codebook: input('codebook', [4, 8]), out: input('out', [3, 8, 1]), bias: input('bias', [3]) }
  const codes = input('codes', ['T'], 'u32')
  const base = input('base', ['T', 3])
  expect(() => dequantize(input('floats', ['T']), q)).toThrow('codes (floats) has format f32, expected u32')
  expect(() => dequantize(codes, { ...q, out: input('wide', [3, 9, 1]) })).toThrow('shape [3,9,1], expected [3,8,1]')
  expect(() => dequantize(codes, q, { add: input('two', ['T', 2]) })).toThrow(
    'add (two) has shape [T,2], expected [T,3]',
  )
  expect(() => dequantize(codes, q, { add: base, from: base })).toThrow('both add and from')
})
