import { describe, expect, test } from 'vitest'
import { cpuDevice } from '../../src/device/cpu.ts'
import { Graph } from '../../src/graph/graph.ts'
import { fillRandom, hash } from '../../src/kernels/fill_random.ts'
import { type Case, gpu, runOn, sameOnEveryDevice } from '../check.ts'

const zeros = (rows: number, width: number, format: 'f32' | 'f16' | 'bf16') =>
  ({ shape: [rows, width], format, kept: true, data: new Float32Array(rows * width) }) as const

const filled = (seed: number, rows = 37, width = 24, format: 'f32' | 'f16' | 'bf16' = 'f32'): Case => ({
  operands: { seed: { shape: [1], format: 'u32', data: Uint32Array.of(seed) }, w: zeros(rows, width, format) },
  op: ({ seed, w }) => ({ w: fillRandom(w!, seed!, { low: -0.25, high: 0.75 }) }),
  kernels: ['fill_random'],
})

describe('fill_random', () => {
  // halves are rounded, by some drivers towards zero: one unit in the last place
  test.each([
    ['f32', 1e-6, 5, 3],
    ['f16', 2 ** -10, 37, 24],
    ['bf16', 2 ** -7, 300, 130],
  ] as const)('%s is the same on every device', async (format, tolerance, rows, width) => {
    await sameOnEveryDevice({ ...filled(7, rows, width, format), tolerance })
  })

  test('uniform in its range, and of its seed alone', async () => {
    const at = async (seed: number) => (await runOn(cpuDevice('test'), filled(seed, 100, 100))).w!
    const [w, again, other] = [await at(1), await at(1), await at(2)]
    expect(again).toEqual(w)
    const mean = (values: Float32Array) => values.reduce((a, b) => a + b) / values.length
    expect(mean(w)).toBeCloseTo(0.25, 1)
    expect(mean(w.map((v) => (v - 0.25) ** 2))).toBeCloseTo(1 / 12, 2)
    expect(Math.min(...w)).toBeGreaterThanOrEqual(-0.25)
    expect(Math.max(...w)).toBeLessThan(0.75)
    expect(mean(w.map((v, i) => (v - 0.25) * (other[i]! - 0.25)))).toBeCloseTo(0, 2)
  })

  test('known hashes', () => {
    // the published function in integers of any size
    const published = (x: bigint) => {
      const state = (x * 747796405n + 2891336453n) % 2n ** 32n
      const word = (((state >> ((state >> 28n) + 4n)) ^ state) * 277803737n) % 2n ** 32n
      return Number((word >> 22n) ^ word)
    }
    for (const x of [0, 1, 2, 0x7fffffff, 0x80000000, 0xffffffff]) expect(hash(x)).toBe(published(BigInt(x)))
  })

  test('says what is wrong', async () => {
    const device = await gpu()
    const graph = new Graph(device.target)
    const seed = graph.input('seed', [1], 'u32')
    const range = { low: 0, high: 1 }
    expect(() => fillRandom(graph.input('x', ['T', 8]), seed, range)).toThrow(
      'fill_random: w (x) has shape [T,8], expected a fixed one',
    )
    const w = device.keep('w', [8], 'f32')
    expect(() => fillRandom(w, graph.input('seeds', [2], 'u32'), range)).toThrow(
      'seed (seeds) has shape [2], expected [1]',
    )
    expect(() => fillRandom(w, graph.input('float', [1]), range)).toThrow('expected u32')
    device.release(w)
  })
})
