import { describe, expect, test } from 'vitest'
import { cpuDevice } from '../../src/device/cpu.ts'
import { Graph } from '../../src/graph/graph.ts'
import { gatedRmsNorm } from '../../src/kernels/gated_rms_norm.ts'
import { gatherRows } from '../../src/kernels/gather_rows.ts'
import { type Case, expectWithin, gpu, runOn, sameOnEveryDevice } from '../check.ts'
import { fixtureTensors } from '../fixtures.ts'

const goldens = fixtureTensors('ops/ops.safetensors')

test('goldens', async () => {
  const x = goldens.get('gated.x')
  const [T, heads, D] = x.shape as [number, number, number]
  const c: Case = {
    operands: {
      x: { shape: ['T', heads * D], data: x.data },
      z: { shape: ['T', heads * D], data: goldens.get('gated.z').data },
      w: { shape: [D], data: goldens.get('gated.w').data, kept: true },
    },
    counts: { T },
    op: ({ x, z, w }) => ({ y: gatedRmsNorm(x!, { of: z!, column: 0 }, w!, { eps: 1e-6 }) }),
  }
  const want = goldens.get('gated.qwen_norm_then_gate').data
  for (const device of [cpuDevice('test'), await gpu()]) {
    const { y } = await runOn(device, c)
    expectWithin(y!, want, 1e-7, 1e-5, device.kind)
  }
})

describe('is the same on every device', () => {
  test.each([
    [1, 16, 128, 0, 0],
    [5, 3, 20, 7, 3],
    [70, 2, 8, 16, 2],
    [9, 1, 4, 1, 0],
  ])('%i tokens, %i heads of %i, gate after %i columns and before %i', (T, heads, D, before, after) =>
    sameOnEveryDevice({
      operands: {
        x: { shape: ['T', heads * D] },
        z: { shape: ['T', before + heads * D + after] },
        w: { shape: [D], kept: true },
      },
      counts: { T },
      op: ({ x, z, w }) => ({
        y: gatedRmsNorm(x!, { of: z!, column: before }, w!, { eps: 1e-6, summing: 'alone' }),
      }),
      kernels: ['gated_rms_norm'],
    }),
  )

  test.each([
    [3, 16, 128, 0, 0],
    [5, 3, 20, 7, 3],
  ])('shared: %i tokens, %i heads of %i, gate after %i columns and before %i', (T, heads, D, before, after) =>
    sameOnEveryDevice({
      operands: {
        x: { shape: ['T', heads * D] },
        z: { shape: ['T', before + heads * D + after] },
        w: { shape: [D], kept: true },
      },
      counts: { T },
      op: ({ x, z, w }) => ({
        y: gatedRmsNorm(x!, { of: z!, column: before }, w!, { eps: 1e-6, summing: 'shared' }),
      }),
      kernels: ['gated_rms_norm_shared'],
    }),
  )

  test('half-precision result', () =>
    sameOnEveryDevice({
      operands: {
        x: { shape: ['T', 64] },
        z: { shape: ['T', 64] },
        w: { shape: [32], kept: true },
        index: { shape: ['R'], format: 'u32', data: Uint32Array.of(2, 1) },
      },
      counts: { T: 3, R: 2 },
      op: ({ x, z, w, index }) => ({
        y: gatherRows(gatedRmsNorm(x!, { of: z!, column: 0 }, w!, { eps: 1e-6, format: 'f16' }), index!),
      }),
      tolerance: 1e-3, // f16 rounds by 2^-11
    }))
})

test('says what does not fit', () => {
  const graph = new Graph(cpuDevice('test').target)
  const x = graph.input('x', ['T', 64])
  const z = graph.input('z', ['T', 100])
  const w = graph.input('w', [32])
  const call = (column: number, weight = w) => gatedRmsNorm(x, { of: z, column }, weight, { eps: 1e-6 })
  expect(() => call(37)).toThrow('z (z) has 100 columns, expected at least 64 from column 37 on')
  expect(() => call(0, graph.input('odd', [24]))).toThrow("64 columns, expected a multiple of w's 24")
  expect(() => gatedRmsNorm(x, { of: graph.input('rows', ['R', 64]), column: 0 }, w, { eps: 1e-6 })).toThrow(
    'z (rows) has shape [R,64], expected [T,64]',
  )
})
