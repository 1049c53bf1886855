import { afterAll, describe, expect, test } from 'vitest'
import { create, globals } from 'webgpu'
import { cpuTarget } from '../../src/device/cpu.ts'
import { pipelines } from '../../src/device/webgpu/pipelines.ts'
import { Graph } from '../../src/graph/graph.ts'
import { defaultLimits, type LinearPlan, type Target } from '../../src/graph/target.ts'
import { type Shape, type Tensor, tensor } from '../../src/graph/tensor.ts'
import { linearCandidates, linearTable } from '../../src/kernels/lib/linear_tiles.ts'
import { type LinearOptions, linear, linearMisfit, linearParts, recordLinear } from '../../src/kernels/linear.ts'
import { addRmsNorm } from '../../src/kernels/rms_norm.ts'
import { type Case, expectClose, gpu, noise, runOn, sameOnEveryDevice } from '../check.ts'
import { emulated, hasUnits, withUnits } from './matrix_units.ts'

const kept = (label: string, shape: Shape): Tensor => tensor({ label, shape, format: 'f16', place: 'kept' })

describe('compiles under Tint', () => {
  const dawn = create(['backend=null', 'enable-dawn-features=allow_unsafe_apis']) // held: Dawn dies with it
  Object.assign(globalThis, globals)
  let device: GPUDevice | undefined
  afterAll(() => device?.destroy())

  test.each([
    [16, 70],
    [8, 25],
  ])('every candidate, in fragments of %i', async (size, many) => {
    const adapter = await dawn.requestAdapter()
    device ??= await adapter!.requestDevice({ requiredFeatures: [...adapter!.features] as GPUFeatureName[] })
    const limits = { ...defaultLimits, workgroupBytes: 48 * 1024, invocations: 1024 }
    const graph = new Graph(withUnits({ ...cpuTarget, kind: 'webgpu', limits }, size))
    const x = graph.input('x', ['T', 1024], 'f16')
    const w = kept('w', [2048, 1024])
    const residual = graph.input('residual', ['T', 2048])
    const finishes: LinearOptions[] = [{}, { format: 'f16' }, { add: residual }, { finish: 'swiglu', format: 'f16' }]
    const plans = [...linearCandidates, ...linearTable].filter((plan) => plan.variant === 'linear_matrix')
    const fitting = finishes.flatMap((options) =>
      plans
        .filter((plan) => plan.order.SK === 1 || !(options.format || options.add))
        .filter((plan) => linearMisfit(x, w, plan, options) === undefined)
        .map((plan) => recordLinear(x, w, plan, options)),
    )
    expect(fitting.length).toBeGreaterThan(many)
    expect(new Set(graph.steps.map((step) => step.kernel.name))).toEqual(new Set(['linear_matrix']))

    const shaders = pipelines(device)
    const made = await Promise.allSettled(graph.steps.map((step) => shaders.of(step)))
    const failures = made.flatMap((m) =>
      m.status === 'rejected' ? [(m.reason as Error).message.split('\n', 1)[0]] : [],
    )
    // This backend has 16 KiB of workgroup memory and 256 invocations, which it counts after all else has been checked.
    const small = /workgroup storage \(\d+ bytes\) is larger than|workgroup_size\(\d+, 1, 1\) that exceeds/
    const others = failures.filter((f) => !small.test(f!))
    expect(others).toEqual([])
    expect(made.length - failures.length).toBeGreaterThan(10)
  })
})

test('is picked where the device has matrix units, and right there', async () => {
  const { target } = await gpu()
  const picked = target.software ? 'linear' : hasUnits(target) ? 'linear_matrix' : 'linear_tiled'
  const steps = { linear: 2, linear_tiled: 6, linear_matrix: 8 } // one for each height
  await sameOnEveryDevice({
    operands: {
      x: { shape: ['T', 256], format: 'f16' },
      w: { shape: [200, 256], format: 'f16', kept: true },
    },
    counts: { T: 70 },
    op: ({ x, w }) => ({ y: linear(x!, w!), parts: linearParts(x!, w!, { split: 2 }).sums }),
    pick: 'target',
    kernels: Array.from({ length: steps[picked] }, () => picked),
  })
})

test('is picked for f16 operands of a multiple of 32 columns, unless it failed or the units are not known', () => {
  const limits = { ...defaultLimits, workgroupBytes: 48 * 1024, invocations: 1024 }
  const nvidia = withUnits({ ...cpuTarget, kind: 'webgpu', software: false, limits }, 16)
  const picked = (target: Target, IN = 1024, options: LinearOptions = {}): string[] => {
    const graph = new Graph(target)
    linear(graph.input('x', ['T', IN], 'f16'), kept('w', [7168, IN]), options)
    return [...new Set(graph.steps.map((step) => step.kernel.name))]
  }
  expect(picked(nvidia)).toEqual(['linear_matrix'])
  expect(picked(nvidia, 1024, { finish: 'swiglu', format: 'f16' })).toEqual(['linear_matrix'])
  expect(picked(nvidia, 96)).toEqual(['linear_matrix'])
  expect(picked(nvidia, 48)).toEqual(['linear_tiled'])
  expect(picked({ ...nvidia, disabled: new Map([['linear_matrix', 'wrong there']]) })).toEqual(['linear_tiled'])
  expect(picked({ ...nvidia, features: new Set(['shader-f16', 'subgroups']) })).toEqual(['linear_tiled'])
  expect(picked({ ...nvidia, limits: { ...limits, invocations: 32 } })).toEqual(['linear'])
  expect(picked({ ...nvidia, software: true })).toEqual(['linear'])
})

test('says what of a tile the shader has no names for', () => {
  const limits = { ...defaultLimits, workgroupBytes: 48 * 1024, invocations: 1024 }
  const misfit = (size: number, tile: object, BK = 32, options: LinearOptions = {}, lanes = 32): string | undefined => {
    const graph = new Graph(withUnits({ ...cpuTarget, kind: 'webgpu', limits }, size, size, size, lanes))
    const whole = { BM: 128, BN: 128, WM: 2, WN: 2, ...tile }
    const plan: LinearPlan = { variant: 'linear_matrix', order: { SK: 1, BK }, heights: [{ tile: whole }] }
    return linearMisfit(graph.input('x', ['T', 192], 'f16'), kept('w', [256, 192]), plan, options)
  }
  expect(misfit(16, {})).toBe(undefined)
  expect(misfit(8, {})).toBe('8 x 8 fragments per subgroup, at most 4 x 4')
  expect(misfit(16, { WM: 1 })).toBe('8 x 4 fragments per subgroup, at most 4 x 4')
  expect(misfit(16, { WM: 1, BM: 64 }, 64)).toBe('16 vec4u carried by an invocation, at most 8')
  expect(misfit(16, {}, 48)).toBe('fragments of 16 x 16 x 16 do not divide the tile')
  expect(misfit(16, { BM: 24 })).toBe('fragments of 16 x 16 x 16 do not divide the tile')
  expect(misfit(16, { BN: 96, WN: 2 }, 32, { finish: 'swiglu' })).toBe(
    'fragments of 16 x 16 x 16 do not divide the tile',
  )
  expect(misfit(16, { SL: 2 })).toBe('2 slices of a sum in 1 parts, expected 1, 2 or 4 that divide them')
  expect(misfit(16, { BM: 16, BN: 16, WM: 1, WN: 1 }, 64, {}, 4)).toBe(
    '4 invocations do not share rows of 64 terms evenly',
  )
})

describe('the shader, on matrix units, emulated where there are none, is the same', () => {
  interface Form {
    units: [M: number, N: number, K: number]
    order: LinearPlan['order']
    tile: Record<'BM' | 'BN' | 'WM' | 'WN', number> & { readonly SL?: number }
    /** On real units. */
    real?: Pick<Form, 'order' | 'tile'>
  }
  /** 2 x 2 fragments of two steps. */
  const few: Form = { units: [8, 16, 16], order: { SK: 1, BK: 32 }, tile: { BM: 32, BN: 64, WM: 2, WN: 2 } }
  /** 4 x 4 of four steps, two at once. */
  const full: Form = { units: [8, 8, 8], order: { SK: 1, BK: 32 }, tile: { BM: 64, BN: 64, WM: 2, WN: 2 } }
  const wide: Form = { ...full, tile: { BM: 16, BN: 64, WM: 2, WN: 2 } }
  /** Rows of w that an invocation carries lie 24 apart, out of step with 16 of gate and 16 of up. */
  const uneven: Form = {
    units: [16, 16, 16],
    order: { SK: 1, BK: 16 },
    tile: { BM: 16, BN: 96, WM: 1, WN: 3 },
    real: { order: { SK: 1, BK: 64 }, tile: { BM: 128, BN: 192, WM: 2, WN: 6 } },
  }
  /** On real units a tile that suits them; else for subgroups of 16, with the emulation put into the step. */
  function record(graph: Graph, x: Tensor, w: Tensor, form: Form, options: LinearOptions = {}): Tensor {
    const { units, order, tile } = form
    if (hasUnits(graph.target)) {
      const square = { BM: 64, BN: 64, WM: 2, WN: 2, SL: tile.SL ?? 1 }
      const real = form.real ?? { order, tile: square }
      return recordLinear(
        x,
        w,
        { variant: 'linear_matrix', order: real.order, heights: [{ tile: real.tile }] },
        options,
      )
    }
    const { target } = graph
    Object.assign(graph, { target: withUnits(target, ...units, 16) })
    const y = recordLinear(x, w, { variant: 'linear_matrix', order, heights: [{ tile }] }, options)
    const step = graph.steps.pop()!
    graph.steps.push({ ...step, kernel: emulated(step.kernel, target) })
    return y
  }
  const operands = (T: number, IN: number, OUT: number): Case['operands'] => ({
    x: { shape: ['T', IN], format: 'f16', data: noise(T * IN, 3).map((v) => v / 4) },
    w: { shape: [OUT, IN], format: 'f16', kept: true },
  })

  test('stored at once or masked, in two parts', () =>
    sameOnEveryDevice({
      operands: operands(69, 96, 92),
      counts: { T: 69 },
      op: ({ x, w }, graph) => ({ y: record(graph, x!, w!, { ...full, order: { SK: 2, BK: 32 } }) }),
      kernels: ['linear_matrix'],
    }))

  test('in slices that a workgroup adds: the bits of whoever adds the parts', async () => {
    const tile = { BM: 16, BN: 32, WM: 1, WN: 2 } // small: it is compiled for each number of slices
    const sliced = (SL: number): Case => ({
      operands: { ...operands(21, 128, 40), residual: { shape: ['T', 40] }, norm: { shape: [40], kept: true } },
      counts: { T: 21 },
      op({ x, w, residual, norm }, graph) {
        const parts = record(graph, x!, w!, { units: [16, 16, 16], order: { SK: 4, BK: 16 }, tile: { ...tile, SL } })
        return { sum: addRmsNorm(residual!, parts, norm!, { eps: 1e-6 }).x }
      },
      kernels: ['linear_matrix', 'add_rms_norm'],
    })
    const [apart, ...together] = await Promise.all([1, 2, 4].map(async (SL) => runOn(await gpu(), sliced(SL))))
    for (const { sum } of together) expectClose(sum!, apart!.sum!, 0)
    await sameOnEveryDevice(sliced(2))
  })

  test('with a residual, rows of no multiple of 16 bytes', () =>
    sameOnEveryDevice({
      operands: { ...operands(5, 64, 35), residual: { shape: ['T', 35] } },
      counts: { T: 5 },
      op: ({ x, w, residual }, graph) => ({ y: record(graph, x!, w!, few, { add: residual! }) }),
      kernels: ['linear_matrix'],
    }))

  test.each([few, wide, uneven])('SwiGLU, in f16, of $tile.BN columns in units $units', (form) =>
    sameOnEveryDevice({
      operands: { ...operands(33, 64, 80), down: { shape: [8, 40], kept: true } },
      counts: { T: 33 },
      op: ({ x, w, down }, graph) => ({
        y: linear(record(graph, x!, w!, form, { finish: 'swiglu', format: 'f16' }), down!),
      }),
      tolerance: 1e-3, // y, about 1, is rounded to f16 by up to 2^-11 of it, in sums of 40
      kernels: ['linear_matrix', 'linear'],
    }),
  )
})
