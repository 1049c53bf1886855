import { describe, expect, test } from 'vitest'
import { cpuDevice, cpuTarget } from '../../src/device/cpu.ts'
import { Graph } from '../../src/graph/graph.ts'
import { defaultLimits, type LinearPlan, type Target } from '../../src/graph/target.ts'
import { type Format, tensor } from '../../src/graph/tensor.ts'
import { linear, linearMisfit, recordLinear } from '../../src/kernels/linear.ts'
import { type Case, expectClose, gpu, noise, relativeNorm, runOn, sameOnEveryDevice } from '../check.ts'

// Software drivers compile barriers slowly: few pipelines, small tiles.
const planOf = (order: Partial<LinearPlan['order']>, tile: Record<string, number>): LinearPlan => ({
  variant: 'linear_tiled',
  order: { SK: 1, BK: 16, RUN: 0, ...order },
  heights: [{ tile }],
})
const small = { BM: 16, BN: 16, RM: 4, RN: 4 }
const pairs = { BM: 16, BN: 16, RM: 4, RN: 8 }

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

  test('SwiGLU of runs of eight, in f16', () =>
    sameOnEveryDevice({
      operands: {
        x: { shape: ['T', 48], format: 'f16', data: noise(11 * 48).map((v) => v / 4) },
        w: { shape: [48, 48], format: 'f16', kept: true },
        down: { shape: [8, 24], kept: true },
      },
      counts: { T: 11 },
      op({ x, w, down }) {
        const y = recordLinear(x!, w!, planOf({ BK: 8, RUN: 8 }, pairs), { finish: 'swiglu', format: 'f16' })
        return { y: recordLinear(y, down!, plain) }
      },
      tolerance: 2e-3, // y, about 1, is rounded to f16 by up to 2^-11 of it, and so are runs of its sums
      kernels: ['linear_tiled', 'linear'],
    }))

  test('f32 operands, bf16 weights, a residual', () =>
    sameOnEveryDevice({
      operands: {
        x: { shape: ['R', 40] },
        w: { shape: [35, 40], format: 'bf16', kept: true },
        r: { shape: ['R', 35] },
      },
      counts: { T: 30, R: 18 },
      op: ({ x, w, r }) => ({ y: recordLinear(x!, w!, planOf({ BK: 8 }, { ...small, RM: 8 }), { add: r! }) }),
      kernels: ['linear_tiled'],
    }))
})

describe('sums of f16 products', () => {
  const [IN, OUT] = [1024, 16]
  const x = noise(16 * IN, 5)
  const runs = (RUN: number, T = 16): Case => ({
    operands: {
      x: { shape: ['T', IN], format: 'f16', data: x.subarray(0, T * IN) },
      w: { shape: [OUT, IN], format: 'f16', kept: true },
    },
    counts: { T },
    op: ({ x, w }) => ({ y: recordLinear(x!, w!, planOf({ RUN }, small)) }),
  })

  // What rounding to f16 costs the operands is 2.7e-4 of such sums. Drivers that round products too lose most here.
  test.each([
    [0, 1e-6],
    [8, 6e-4],
    [16, 8e-4],
  ])('lose little in runs of %i terms', async (RUN, most) => {
    const { y: want } = await runOn(cpuDevice('test'), runs(RUN))
    const { y: got } = await runOn(await gpu(), runs(RUN))
    expect(want!.length).toBe(16 * OUT)
    expect(relativeNorm(got!, want!)).toBeLessThan(most)
  })

  test('do not depend on how many rows run', async () => {
    const { y: many } = await runOn(await gpu(), runs(16))
    for (const T of [1, 7]) {
      const { y: few } = await runOn(await gpu(), runs(16, T))
      expectClose(few!, many!.subarray(0, T * OUT), 0)
    }
  })
})

test('is picked on hardware without matrix units, unless it failed there', () => {
  const limits = { ...defaultLimits, workgroupBytes: 16384 }
  const hardware: Target = { ...cpuTarget, kind: 'webgpu', software: false, limits }
  const picked = (target: Target, x: Format, w: Format, IN = 1024): string[] => {
    const graph = new Graph(target)
    linear(graph.input('x', ['T', IN], x), tensor({ label: 'w', shape: [512, IN], format: w, place: 'kept' }))
    return graph.steps.map((step) => `${step.kernel.name} ${step.constants.RUN}`)
  }
  const three = (name: string) => [name, name, name] // a step for each height
  expect(picked(hardware, 'f16', 'f16')).toEqual(three('linear_tiled 8'))
  expect(picked(hardware, 'f32', 'f16')).toEqual(three('linear_tiled 0'))
  expect(picked(hardware, 'f32', 'bf16', 24)).toEqual(three('linear_tiled 0'))
  expect(picked(hardware, 'f16', 'f16', 24)).toEqual(['linear undefined'])
  expect(picked(hardware, 'f16', 'bf16')).toEqual(['linear undefined'])
  expect(picked({ ...hardware, software: true }, 'f16', 'f16')).toEqual(['linear undefined'])
  const disabled = new Map([['linear_tiled', 'the probe failed']])
  expect(picked({ ...hardware, disabled }, 'f16', 'f16')).toEqual(['linear undefined'])
})

test('says why a tile does not fit', () => {
  const graph = new Graph({ ...cpuTarget, limits: defaultLimits })
  const w = tensor({ label: 'w', shape: [64, 64], format: 'f16', place: 'kept' })
  const misfit = (order: Partial<LinearPlan['order']>, tile: object, options = {}, x: Format = 'f16') =>
    linearMisfit(graph.input(`x${graph.inputs.size}`, ['T', 64], x), w, planOf(order, { ...small, ...tile }), options)
  expect(misfit({}, {})).toBe(undefined)
  expect(misfit({ BK: 48 }, {})).toBe('64 columns of x, expected a multiple of 48')
  expect(misfit({ RUN: 6 }, {})).toBe('16 terms are no multiple of 8 and of runs of 6')
  expect(misfit({}, {}, { finish: 'swiglu' })).toContain('4 x 4 sums of an invocation are no quads')
  expect(misfit({}, { RM: 16 })).toBe('16 x 4 sums of an invocation, at most 8 x 8')
  expect(misfit({ BK: 64 }, { RM: 8, RN: 8 })).toBe('4 invocations carry too little of tiles of 64 terms')
  expect(misfit({}, { BM: 128, BN: 128 })).toBe('1024 invocations, at most 256')
  expect(misfit({ BK: 32 }, { BM: 128, BN: 128, RM: 8, RN: 8 }, {}, 'f32')).toBe(
    '33280 bytes of workgroup memory, at most 16384',
  )
  const x = graph.input('x', ['T', 64], 'f16')
  expect(() => recordLinear(x, w, planOf({ BK: 48 }, small))).toThrow('linear_tiled: [T,64] x [64,64]: 64 columns of x')
  expect(() => recordLinear(x, w, planOf({ SK: 2 }, small), { format: 'f16' })).toThrow('set SK to 1')
})
