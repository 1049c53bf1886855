import { describe, expect, test } from 'vitest'
import { cpuDevice } from '../../src/device/cpu.ts'
import { Graph } from '../../src/graph/graph.ts'
import { gatherRows } from '../../src/kernels/gather_rows.ts'
import { rmsNorm } from '../../src/kernels/rms_norm.ts'
import { type Case, expectWithin, gpu, runOn, sameOnEveryDevice } from '../check.ts'
import { fixtureTensors } from '../fixtures.ts'

const goldens = fixtureTensors('ops/ops.safetensors')

describe.each([128, 256, 1000])('goldens of width %i', (width) => {
  test.each([
    ['rms_plain', 0],
    ['rms_zero_centred', 1],
  ] as const)('%s', async (name, offset) => {
    const x = goldens.get(`norm.d${width}.x`)
    const c: Case = {
      operands: {
        x: { shape: ['T', width], data: x.data },
        w: { shape: [width], data: goldens.get(`norm.d${width}.w`).data, kept: true },
      },
      counts: { T: x.shape[0]! },
      op: ({ x, w }) => ({ y: rmsNorm(x!, w!, { eps: 1e-6, offset }) }),
    }
    const want = goldens.get(`norm.d${width}.${name}`).data
    for (const device of [cpuDevice('test'), await gpu()]) {
      const { y } = await runOn(device, c)
      expectWithin(y!, want, 1e-7, 1e-5, `${name} on ${device.kind}`)
    }
  })
})

describe('is the same on every device', () => {
  test.each([
    [1, 6],
    [3, 1],
    [5, 4],
    [7, 100],
    [2, 1022],
    [33, 64],
    [130, 20],
  ])('%i rows of %i', (T, width) =>
    sameOnEveryDevice({
      operands: { x: { shape: ['T', width] }, w: { shape: [width], kept: true } },
      counts: { T },
      op: ({ x, w }) => ({ y: rmsNorm(x!, w!, { eps: 1e-6, offset: 1 }) }),
      kernels: ['rms_norm'],
    }),
  )

  test.each([6, 64])('half-precision rows of %i, in and out', (width) =>
    sameOnEveryDevice({
      operands: {
        x: { shape: ['T', width] },
        w: { shape: [width], kept: true },
        index: { shape: ['R'], format: 'u32', data: Uint32Array.of(4, 0, 8) },
      },
      counts: { T: 9, R: 3 },
      op: ({ x, w, index }) => {
        const half = rmsNorm(x!, w!, { eps: 1e-6, offset: 1, format: 'f16' })
        return { y: gatherRows(rmsNorm(half, w!, { eps: 1e-6, format: 'f16' }), index!) }
      },
      tolerance: 2e-3, // f16 rounds by 2^-11, twice
    }),
  )
})

test('says what does not fit', () => {
  const graph = new Graph(cpuDevice('test').target)
  const x = graph.input('x', ['T', 8])
  const w = graph.input('w', [8])
  expect(() => rmsNorm(x, graph.input('short', [4]), { eps: 0 })).toThrow('w (short) has shape [4], expected [8]')
  expect(() => rmsNorm(graph.input('cube', ['T', 2, 8]), w, { eps: 0 })).toThrow('shape [T,2,8], expected [T,8]')
  expect(() => rmsNorm(x, graph.input('half', [8], 'f16'), { eps: 0 })).toThrow('format f16, expected f32')
  expect(() => rmsNorm(graph.input('pool', ['*', 8]), w, { eps: 0 })).toThrow('pool is a pool')
})
