import { describe, expect, test } from 'vitest'
import { cpuDevice, cpuTarget } from '../../src/device/cpu.ts'
import { Graph } from '../../src/graph/graph.ts'
import type { Format, Tensor } from '../../src/graph/tensor.ts'
import { type LinearOptions, linear, linearMisfit, recordLinear } from '../../src/kernels/linear.ts'
import { type Case, noise, runOn, sameOnEveryDevice } from '../check.ts'

const plan = (PER: number, WORKGROUP = 8 * PER, LANES = 4 * PER, SK = 1) =>
  ({ variant: 'linear_few', order: { SK, BK: 8 }, heights: [{ tile: { WORKGROUP, LANES, PER } }] }) as const

const fewCase = (
  T: number,
  IN: number,
  OUT: number,
  PER: number,
  format: Format,
  options: LinearOptions = {},
): Case => ({
  operands: {
    x: { shape: ['T', IN] },
    w: { shape: [OUT, IN], format, kept: true },
    norm: { shape: [2, IN], kept: true },
    residual: { shape: ['T', OUT] },
  },
  counts: { T },
  op: ({ x, w, norm, residual }) => {
    const also = { ...(options.norm && { norm: { w: norm!, eps: 1e-5 } }), ...(options.add && { add: residual! }) }
    return { y: recordLinear(x!, w!, plan(PER), { ...options, ...also }) }
  },
  kernels: ['linear_few'],
})
const given = {} as Tensor // stands for the case's own
const norm = { w: given, eps: 0 }

describe('the shader and the twin give the same', () => {
  test.each<[number, number, number, number, Format, LinearOptions]>([
    [1, 24, 3, 4, 'f32', { norm }],
    [2, 1024, 40, 8, 'bf16', { norm, add: given }],
    [3, 1000, 17, 4, 'f16', {}],
    [2, 320, 11, 8, 'q8', { add: given }],
    [2, 1056, 18, 4, 'q8', { norm }],
    [1, 512, 22, 8, 'q8', { norm, finish: 'swiglu' }],
    [2, 200, 22, 4, 'f16', { norm, finish: 'swiglu_up_first' }],
    [2, 200, 22, 8, 'f16', { finish: 'swiglu' }],
  ])('%i rows, %i -> %i, %i columns at once, %s weights, %j', (T, IN, OUT, PER, format, options) =>
    sameOnEveryDevice(fewCase(T, IN, OUT, PER, format, options)),
  )

  test('rows with one huge value, and rows far from zero', async () => {
    const c = fewCase(2, 1024, 9, 8, 'f16', { norm })
    const x = noise(2 * 1024, 3).map((v, i) => (i < 1024 ? v : v + 300))
    x[70] = 1.6e4
    const operands = { ...c.operands, x: { ...c.operands.x!, data: x } }
    await sameOnEveryDevice({ ...c, operands, tolerance: 1e-4 }) // f32 has 2^-15 left behind 300
  })

  test('half-precision rows', () =>
    sameOnEveryDevice({
      operands: { x: { shape: ['T', 64], format: 'f16' }, w: { shape: [5, 64], format: 'f16', kept: true } },
      counts: { T: 2 },
      op: ({ x, w }) => ({ y: recordLinear(x!, w!, plan(8)) }),
      kernels: ['linear_few'],
    }))
})

test('a norm is part of the product, or an op before it', async () => {
  const options = { norm, finish: 'swiglu', rows: 'few' } as const
  const fused = await runOn(cpuDevice('test'), fewCase(2, 64, 12, 4, 'f32', options))
  const { op: _, kernels: __, ...rest } = fewCase(2, 64, 12, 4, 'f32', options)
  const apart: Case = {
    ...rest,
    op: ({ x, w, norm }) => ({ y: linear(x!, w!, { ...options, norm: { w: norm!, eps: 1e-5 } }) }),
    kernels: ['layer_norm', 'linear'],
  }
  const { y } = await runOn(cpuDevice('test'), apart)
  fused.y!.forEach((v, i) => expect(Math.abs(v - y![i]!)).toBeLessThan(1e-5 * (1 + Math.abs(v))))
  await sameOnEveryDevice(apart)
})

test('is picked for few rows, on hardware and unless it failed', () => {
  const hardware = { ...cpuTarget, kind: 'webgpu', software: false } as const
  const picked = (target: Graph['target'], options: LinearOptions = {}): string[] => {
    const graph = new Graph(target)
    const norm = { w: graph.input('norm', [2, 64]), eps: 1e-5 }
    linear(graph.input('x', ['T', 64]), weight(graph), { norm, ...options })
    return graph.steps.map(({ kernel }) => kernel.name)
  }
  expect(picked(hardware, { rows: 'few' })).toEqual(['linear_few'])
  expect(picked(hardware)[0]).toBe('layer_norm_shared')
  expect(picked({ ...hardware, software: true }, { rows: 'few' })).toEqual(['layer_norm', 'linear'])
  const disabled = new Map([['linear_few', 'wrong there']])
  expect(picked({ ...hardware, disabled }, { rows: 'few' })).not.toContain('linear_few')
})

test('says what does not fit', () => {
  const graph = new Graph({ ...cpuTarget, kind: 'webgpu', limits: { ...cpuTarget.limits, workgroupBytes: 16384 } })
  const x = graph.input('x', ['T', 64])
  const misfit = (tile: ReturnType<typeof plan>) => linearMisfit(x, weight(graph), tile)
  expect(misfit(plan(8))).toBe(undefined)
  expect(misfit(plan(6))).toBe('6 columns, expected 4 or 8')
  expect(misfit(plan(8, 64, 16))).toBe('16 lanes for a sum, expected a power of two from 32 on')
  expect(misfit(plan(8, 32, 64))).toBe('32 lanes, expected a power of two from 64 on')
  expect(misfit(plan(8, 256))).toBe('20992 bytes of workgroup memory, at most 16384')
  expect(misfit(plan(8, 64, 32, 2))).toBe('a sum in 2 parts, expected one')
  const rows = graph.input('rows', ['T', 2048])
  const wide = { norm: { w: graph.input('wide', [2, 2048]), eps: 1 } }
  const few = linearMisfit(rows, graph.input('w of rows', [8, 2048]), plan(8), wide)
  expect(few, 'no room for two rows').toBe('17920 bytes of workgroup memory, at most 16384')
  const halves = graph.input('halves', ['T', 64], 'f16')
  const short = { norm: { w: graph.input('short', [2, 8]), eps: 1 } }
  expect(() => linear(x, weight(graph), short)).toThrow('norm (short) has shape [2,8], expected [2,64]')
  expect(() => linear(halves, weight(graph), short)).toThrow('halves) has format f16, expected f32')
})

const weight = (graph: Graph): Tensor => graph.input(`w ${graph.inputs.size}`, [8, 64])
