import { describe, expect, test } from 'vitest'
import { cpuDevice, cpuTarget } from '../../src/device/cpu.ts'
import { Graph } from '../../src/graph/graph.ts'
import { dequantize } from '../../src/kernels/dequantize.ts'
import { nearestCode } from '../../src/kernels/nearest_code.ts'
import { type Case, gpu, noise, runOn, sameOnEveryDevice } from '../check.ts'

/** Codes as numbers: the first channel of a codebook of 0, 1, 2, .. */
const nearest = (x: Float32Array, codebook: Float32Array, D: number): Case => {
  const N = codebook.length / D
  const index = Float32Array.from({ length: N }, (_, n) => n)
  return {
    operands: {
      x: { shape: ['T', D], data: x },
      codebook: { shape: [N, D], data: codebook },
      index: { shape: [N, 1], data: index },
      one: { shape: [1, 1, 1], data: Float32Array.of(1) },
      zero: { shape: [1], data: Float32Array.of(0) },
    },
    counts: { T: x.length / D },
    op: ({ x, codebook, index, one, zero }) => ({
      codes: dequantize(nearestCode(x!, codebook!), { codebook: index!, out: one!, bias: zero! }),
    }),
    kernels: ['nearest_code', 'dequantize'],
  }
}

test('cosine counts, not length; of codes as near the first', async () => {
  const codebook = Float32Array.of(0, 0, 9, 9, 1, 0.1, 2, 0.2, -3, 1, -0.01, 0)
  const x = Float32Array.of(0.5, 0.02, 1, 1, -1, 0, 1e-5, 1e-6, 0, 0, -7, 2)
  for (const device of [cpuDevice('test'), await gpu()])
    expect([...(await runOn(device, nearest(x, codebook, 2))).codes!]).toEqual([2, 1, 5, 2, 0, 4])
})

describe('is the same on every device', () => {
  test.each([
    [1, 1024, 8],
    [70, 300, 3],
  ])('%i rows, %i codes of width %i', (T, N, D) => sameOnEveryDevice(nearest(noise(T * D, 3), noise(N * D, 4), D)))
})

test('says what does not fit', () => {
  const graph = new Graph(cpuTarget)
  const codebook = graph.input('codebook', [16, 8])
  expect(() => nearestCode(graph.input('x', ['T', 4]), codebook)).toThrow('x (x) has shape [T,4], expected [T,8]')
  expect(() => nearestCode(graph.input('half', ['T', 8], 'f16'), codebook)).toThrow('format f16, expected f32')
})
