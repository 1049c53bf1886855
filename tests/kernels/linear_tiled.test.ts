import { describe, expect, test } from 'vitest'
import { cpuTarget } from '../../src/device/cpu.ts'
import { Graph } from '../../src/graph/graph.ts'
import { defaultLimits, type LinearPlan, type Target } from '../../src/graph/target.ts'
import { type Format, tensor } from '../../src/graph/tensor.ts'
import { linear, linearMisfit, recordLinear } from '../../src/kernels/linear.ts'
import { type Case, expectClose, gpu, noise, runOn, sameOnEveryDevice } from '../check.ts'

// Software drivers compile barriers slowly: few pipelines, small tiles.
const planOf = (order: Partial<LinearPlan['order']>, tile: Record<string, number>): LinearPlan => ({
  variant: 'linear_tiled',
  order: { SK: 1, BK: 16, ...order },
  heights: [{ tile }],
})
const small = { BM: 16, BN: 32, RM: 4, RN: 4, MORTON: 0 }

const plain: LinearPlan = {
  variant: 'linear',
  order: { SK: 1, BK: 8 },
  heights: [{ tile: { RM: 4, RN: 4, GROUP_X: 16, GROUP_Y: 4 } }],
}

describe('is the same on every device', () => {
  test('f32 sums of f16 operands, in two parts, beyond whole tiles', () =>
    sameOnEveryDevice({
      operands: { x: { shape: ['T', 80], format: 'f16' }, w: { shape: [37, 80], format: 'f16', kept: true } },
      counts: { T: 21 },
      op: ({ x, w }) => ({ y: recordLinear(x!, w!, planOf({ SK: 2 }, small)) }),
      kernels: ['linear_tiled'],
    }))

  test('SwiGLU of f32 sums, in f16', () =>
    sameOnEveryDevice({
      operands: {
        x: { shape: ['T', 48], format: 'f16', data: noise(11 * 48).map((v) => v / 4) },
        w: { shape: [48, 48], format: 'f16', kept: true },
        down: { shape: [8, 24], kept: true },
      },
      counts: { T: 11 },
      op({ x, w, down }) {
        const tile = { BM: 32, BN: 64, RM: 4, RN: 8, MORTON: 1 }
        const y = recordLinear(x!, w!, planOf({}, tile), { finish: 'swiglu', format: 'f16' })
        return { y: recordLinear(y, down!, plain) }
      },
      tolerance: 1e-3, // y, about 1, is rounded to f16 by up to 2^-11 of it
      kernels: ['linear_tiled', 'linear'],
    }))

  test('f32 operands, bf16 weights, a residual, blocks of 8 x 8', () =>
    sameOnEveryDevice({
      operands: {
        x: { shape: ['R', 48] },
        w: { shape: [70, 48], format: 'bf16', kept: true },
        r: { shape: ['R', 70] },
      },
      counts: { T: 30, R: 18 },
      op({ x, w, r }) {
        const tile = { BM: 64, BN: 64, RM: 8, RN: 8, MORTON: 0 }
        return { y: recordLinear(x!, w!, planOf({}, tile), { add: r! }) }
      },
      kernels: ['linear_tiled'],
    }))
})

describe('the bits of a row do not depend on how many rows run:', () => {
  const [IN, OUT] = [80, 40]
  const x = noise(40 * IN, 5)
  const rows = (T: number): Case => ({
    operands: {
      x: { shape: ['T', IN], format: 'f16', data: x.subarray(0, T * IN) },
      w: { shape: [OUT, IN], format: 'f16', kept: true },
    },
    counts: { T },
    op({ x, w }) {
      const heights = [{ upTo: 16, tile: small }, { tile: { ...small, BM: 32, MORTON: 1 } }]
      return { y: recordLinear(x!, w!, { variant: 'linear_tiled', order: { SK: 1, BK: 16 }, heights }) }
    },
  })

  test.each([1, 16, 33])('%i', async (T) => {
    const { y: many } = await runOn(await gpu(), rows(40))
    const { y: few } = await runOn(await gpu(), rows(T))
    expectClose(few!, many!.subarray(0, T * OUT), 0)
  })
})

test('is picked on hardware without matrix units, unless it failed there', () => {
  const limits = { ...defaultLimits, workgroupBytes: 16384 }
  const hardware: Target = { ...cpuTarget, kind: 'webgpu', software: false, limits }
  const picked = (target: Target, x: Format, w: Format, IN = 1024): string[] => {
    const graph = new Graph(target)
    linear(graph.input('x', ['T', IN], x), tensor({ label: 'w', shape: [512, IN], format: w, place: 'kept' }))
    return graph.steps.map((step) => step.kernel.name)
  }
  const two = ['linear_tiled', 'linear_tiled'] // a step for each height
  expect(picked(hardware, 'f16', 'f16')).toEqual(['linear_tiled', ...two])
  expect(picked(hardware, 'f32', 'f16')).toEqual(two)
  expect(picked(hardware, 'f32', 'bf16')).toEqual(two)
  expect(picked(hardware, 'f16', 'bf16')).toEqual(two)
  expect(picked(hardware, 'f16', 'f16', 24)).toEqual(['linear'])
  expect(picked({ ...hardware, software: true }, 'f16', 'f16')).toEqual(['linear'])
  const disabled = new Map([['linear_tiled', 'the probe failed']])
  expect(picked({ ...hardware, disabled }, 'f16', 'f16')).toEqual(['linear'])
})

test('says why a tile does not fit', () => {
  const graph = new Graph({ ...cpuTarget, limits: defaultLimits })
  const w = tensor({ label: 'w', shape: [64, 64], format: 'f16', place: 'kept' })
  const misfit = (order: Partial<LinearPlan['order']>, tile: object, options = {}) => {
    const x = graph.input(`x${graph.inputs.size}`, ['T', 64], 'f16')
    return linearMisfit(x, w, planOf(order, { ...small, ...tile }), options)
  }
  expect(misfit({}, {})).toBe(undefined)
  expect(misfit({ BK: 48 }, {})).toBe('64 columns of x, expected a multiple of 48')
  expect(misfit({ BK: 32 }, {})).toBe('tiles of 32 terms, expected 16')
  expect(misfit({}, {}, { finish: 'swiglu' })).toContain('4 x 4 sums of an invocation, expected 4 or 8 x 8')
  expect(misfit({}, { RM: 16 })).toBe('16 x 4 sums of an invocation, expected 4 or 8 x 4 or 8')
  expect(misfit({}, { BN: 16 })).toBe('tiles of 16 x 16 sums, expected multiples of 16 x 32')
  expect(misfit({}, { BN: 64, RN: 8 })).toBe('32 invocations carry too little of 16 x 64 rows')
  expect(misfit({}, { BM: 128, BN: 128 })).toBe('1024 invocations, at most 256')
  expect(misfit({}, { BM: 128, BN: 128, RM: 8, RN: 8 })).toBe('16640 bytes of workgroup memory, at most 16384')
  const x = graph.input('x', ['T', 64], 'f16')
  expect(() => recordLinear(x, w, planOf({ BK: 48 }, small))).toThrow('linear_tiled: [T,64] x [64,64]: 64 columns of x')
  expect(() => recordLinear(x, w, planOf({ SK: 2 }, small), { format: 'f16' })).toThrow('set SK to 1')
})
