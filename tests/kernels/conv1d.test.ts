import { describe, expect, test } from 'vitest'
import { cpuDevice, cpuTarget } from '../../src/device/cpu.ts'
import { Graph } from '../../src/graph/graph.ts'
import type { Target } from '../../src/graph/target.ts'
import { defaultLimits } from '../../src/graph/target.ts'
import { type Format, type Shape, tensor } from '../../src/graph/tensor.ts'
import { conv1d, convTranspose1d, transposedMissing } from '../../src/kernels/conv1d.ts'
import type { ConvPlan } from '../../src/kernels/lib/conv_tiles.ts'
import { snake } from '../../src/kernels/lib/snake.ts'
import { type Case, counts, expectClose, expectWithin, gpu, noise, runOn, sameOnEveryDevice } from '../check.ts'
import { fixtureTensors } from '../fixtures.ts'
import { convRows, transposed, transposedRows } from './conv_cases.ts'
import { emulated, withUnits } from './matrix_units.ts'

const goldens = fixtureTensors('dac-tiny/ops.safetensors')
const devices = async () => [cpuDevice('test'), await gpu()]
type Three = readonly [number, number, number]

describe('goldens', () => {
  test.each([
    ['conv1d.dil1', { dilation: 1 }],
    ['conv1d.dil3', { dilation: 3 }],
    ['conv1d.dil9', { dilation: 9 }],
    ['conv1d.stride2', { stride: 2 }],
    ['conv1d.stride4', { stride: 4 }],
    ['conv1d.stride8', { stride: 8 }],
  ] as const)('%s', async (name, options) => {
    const [x, w, b, out] = ['x', 'w', 'b', 'out'].map((part) => goldens.get(`${name}.${part}`))
    const rows = convRows(w!.shape as unknown as Three, w!.data)
    const c: Case = {
      operands: {
        x: { shape: [x!.shape[1]!, x!.shape[0]!], data: transposed(x!) },
        w: { ...rows, kept: true },
        bias: { shape: b!.shape, data: b!.data, kept: true },
      },
      op: ({ x, w: rows, bias }) => ({ y: conv1d(x!, { w: rows!, bias: bias!, taps: w!.shape[2]! }, options).value }),
    }
    for (const device of await devices())
      expectWithin((await runOn(device, c)).y!, transposed(out!), 1e-5, 1e-5, device.kind)
  })

  test.each([8, 4, 2, 5])('transposed, stride %i', async (s) => {
    const [x, w, b, out] = ['x', 'w', 'b', 'out'].map((part) => goldens.get(`convt.s${s}.${part}`))
    expect(out!.shape[1]).toBe(x!.shape[1]! * s - (s % 2))
    const rows = transposedRows(w!.shape as unknown as Three, w!.data)
    const c: Case = {
      operands: {
        x: { shape: [x!.shape[1]!, x!.shape[0]!], data: transposed(x!) },
        w: { ...rows, kept: true },
        bias: { shape: b!.shape, data: b!.data, kept: true },
      },
      op: ({ x, w, bias }) => ({ y: convTranspose1d(x!, { w: w!, bias: bias!, taps: 2 * s }).value }),
    }
    for (const device of await devices())
      expectWithin((await runOn(device, c)).y!, transposed(out!), 1e-5, 1e-5, device.kind)
  })

  test('snake', async () => {
    const [x, alpha, out] = ['x', 'alpha', 'out'].map((part) => goldens.get(`snake.${part}`))
    for (const device of await devices()) {
      const { y } = await runOn(device, snaked(transposed(x!), alpha!.data))
      expectWithin(y!, transposed(out!), 1e-5, 1e-5, device.kind)
    }
  })
})

/** Snake of x [L, C], behind a convolution that changes nothing. */
function snaked(x: Float32Array, alpha: Float32Array): Case {
  const C = alpha.length
  const unit = Float32Array.from({ length: C * C }, (_, i) => (i % (C + 1) === 0 ? 1 : 0))
  return {
    operands: {
      x: { shape: [x.length / C, C], data: x },
      w: { ...convRows([C, C, 1], unit), kept: true },
      bias: { shape: [C], data: new Float32Array(C), kept: true },
      alpha: { shape: [1, C, 1], data: alpha, kept: true },
    },
    op: ({ x, w, bias, alpha }) => ({
      y: conv1d(x!, { w: w!, bias: bias!, taps: 1 }, { gives: ['snaked'], snake: alpha! }).snaked,
    }),
  }
}

test('snake is as good as f32 allows over [-60, 60]', async () => {
  const alpha = Float32Array.of(1, 0, 0.0625, 8)
  const x = Float32Array.from({ length: 4 * 30_001 }, (_, i) => ((i >> 2) - 15_000) / 250 / (i % 4 === 3 ? 8 : 1))
  const want = Float64Array.from(x, (v, i) => snake(v, alpha[i % 4]!))
  for (const device of await devices()) {
    const { y } = await runOn(device, snaked(x, alpha))
    // Rounded to f32, and of sin² what is left of a phase of 60 in f32; a small alpha divides that.
    const errors = y!.map((v, i) => (Math.abs(v - want[i]!) - 6e-8 * Math.abs(want[i]!)) * Math.min(alpha[i % 4]!, 1))
    expect(
      errors.reduce((most, e) => Math.max(most, e)),
      device.kind,
    ).toBeLessThan(5e-7)
    expect(
      y!.every((v, i) => i % 4 !== 1 || v === x[i]),
      'alpha 0 gives x',
    ).toBe(true)
  }
})

interface Shapes {
  readonly x: Shape
  readonly taps: number
  readonly O: number
  readonly T?: number
  readonly format?: Format
  readonly weights?: Format
}

/** A convolution with everything: bias, residual, both results. */
function everything({ x, taps, O, T = 3, format = 'f32', weights = 'f32' }: Shapes, options: object): Case {
  const C = x.at(-1) as number
  const IN = Math.ceil((taps * C) / 8) * 8
  return {
    operands: {
      x: { shape: x, format },
      w: {
        shape: [O, IN],
        format: weights,
        kept: true,
        data: noise(O * IN, 7).map((v, i) => (i % IN < taps * C ? v : 0)),
      },
      bias: { shape: [O], kept: true },
      alpha: { shape: [1, O, 1], kept: true },
    },
    counts: { T },
    op({ x, w, bias, alpha }) {
      const conv = { w: w!, bias: bias!, taps }
      const { value } = conv1d(x!, conv, options)
      const residual = { ...options, add: value, snake: alpha!, gives: ['value', 'snaked'] as const }
      const { value: y, snaked } = conv1d(x!, conv, residual)
      const alone = conv1d(x!, conv, { ...options, gives: ['snaked'], snake: alpha! }).snaked
      return { y, snaked, alone, loud: conv1d(x!, conv, { ...options, tanh: true }).value }
    },
  }
}

describe('is the same on every device', () => {
  test.each<[string, Shapes, object]>([
    ['dilation 9, beyond the tile', { x: ['T', 5, 16], taps: 7, O: 21, T: 9 }, { dilation: 9 }],
    ['one row a frame, f16 weights', { x: ['T', 24], taps: 7, O: 9, weights: 'f16' }, {}],
    ['one channel in and out, bf16 weights', { x: ['T', 32, 1], taps: 7, O: 1, weights: 'bf16' }, {}],
    ['4 channels, striding', { x: ['T', 12, 4], taps: 8, O: 6 }, { stride: 4 }],
    ['rows of fixed number', { x: [13, 8], taps: 3, O: 5 }, {}],
    ['a single row', { x: ['T', 8], taps: 7, O: 5, T: 1 }, { dilation: 3 }],
  ])('%s', (_, shapes, options) => sameOnEveryDevice(everything(shapes, options)))

  test.each([
    [8, 16, 6, 0],
    [5, 4, 3, 0],
    [2, 8, 9, 2],
  ])('transposed, stride %i, %i -> %i channels, of a signal that lacks %i rows', async (s, C, O, missing) => {
    const IN = Math.ceil((2 * C) / 8) * 8
    const lacks = transposedMissing(missing, s)
    expect(lacks).toBe(missing * s + (s % 2))
    const c: Case = {
      operands: {
        x: { shape: ['T', 6, C], data: noise(3 * 6 * C).map((v, i) => (i < (3 * 6 - missing) * C ? v : 0)) },
        w: { shape: [s * O, IN], kept: true },
        bias: { shape: [O], kept: true },
        alpha: { shape: [1, O, 1], kept: true },
        w7: { ...convRows([O, O, 7], noise(O * O * 7)), kept: true },
      },
      counts: { T: 3 },
      op({ x, w, bias, alpha, w7 }) {
        const up = { gives: ['value', 'snaked'], snake: alpha!, missing } as const
        const { value, snaked } = convTranspose1d(x!, { w: w!, bias: bias!, taps: 2 * s }, up)
        const conv = { w: w7!, bias: bias!, taps: 7 }
        return { value, snaked, next: conv1d(snaked, conv, { dilation: 3, missing: lacks }).value }
      },
    }
    await sameOnEveryDevice({ ...c, tolerance: 2e-5 })
    const { value, next } = await runOn(cpuDevice('test'), c)
    for (const made of [value!, next!]) expect(made.subarray(made.length - lacks * O).every((v) => v === 0)).toBe(true)
  })

  test('half-precision operands in and out', () =>
    sameOnEveryDevice({
      operands: {
        x: { shape: ['T', 4, 24] },
        w: { shape: [24, 168], format: 'f16', kept: true },
        bias: { shape: [24], kept: true },
        alpha: { shape: [1, 24, 1], kept: true },
      },
      counts: { T: 5 },
      op({ x, w, bias, alpha }) {
        const conv = { w: w!, bias: bias!, taps: 7 }
        const { snaked } = conv1d(x!, conv, { gives: ['snaked'], snake: alpha!, format: 'f16' })
        return { y: conv1d(snaked, conv).value }
      },
      tolerance: 2e-2, // 168 terms of about 6, each rounded by 2^-12 of it, that may add up to about 0
    }))
})

// Software drivers compile barriers slowly: one small tile, in which everything comes together.
describe('in tiles', () => {
  const tile = { BM: 16, BN: 32, BK: 16, RM: 4, RN: 4, MORTON: 0 }
  const plan: ConvPlan = { variant: 'linear_tiled', tile }

  test('f32 operands: dilated, from both ends beyond the signal, with a residual', () =>
    sameOnEveryDevice({
      ...everything({ x: ['T', 5, 16], taps: 7, O: 21, T: 5 }, {}),
      op({ x, w, bias, alpha }) {
        const conv = { w: w!, bias: bias!, taps: 7 }
        const { value } = conv1d(x!, conv)
        const finish = { dilation: 3, add: value, snake: alpha!, gives: ['value', 'snaked'], plan } as const
        return conv1d(x!, conv, finish)
      },
      kernels: ['conv1d', 'linear_tiled'],
    }))

  test('f16 operands: transposed', () =>
    sameOnEveryDevice({
      operands: {
        x: { shape: ['T', 3, 8], format: 'f16' },
        w: { shape: [20, 16], format: 'f16', kept: true },
        bias: { shape: [5], kept: true },
      },
      counts: { T: 6 },
      op: ({ x, w, bias }) => ({
        y: convTranspose1d(x!, { w: w!, bias: bias!, taps: 8 }, { plan }).value,
      }),
      kernels: ['linear_tiled'],
    }))
})

// As tests/kernels/linear_matrix.test.ts does it: on real units, else the very shader, emulated.
test('on matrix units: dilated, with a residual and both results', () =>
  sameOnEveryDevice({
    operands: {
      x: { shape: ['T', 3, 32], format: 'f16', data: noise(15 * 3 * 32, 3).map((v) => v / 4) },
      w: { shape: [37, 224], format: 'f16', kept: true },
      bias: { shape: [37], kept: true },
      residual: { shape: ['T', 3, 37] },
      alpha: { shape: [1, 37, 1], kept: true },
    },
    counts: { T: 15 },
    op({ x, w, bias, residual, alpha }, graph) {
      const conv = { w: w!, bias: bias!, taps: 7 }
      const tile = { BM: 32, BN: 32, BK: 32, WM: 2, WN: 2 }
      const plan = { variant: 'linear_matrix', tile } as const
      const options = { dilation: 9, add: residual!, snake: alpha!, gives: ['value', 'snaked'] as const, plan }
      if (graph.target.matrix && graph.target.subgroupSize) return conv1d(x!, conv, options)
      const { target } = graph
      Object.assign(graph, { target: withUnits(target, 8, 8, 8, 16) })
      const made = conv1d(x!, conv, options)
      const step = graph.steps.pop()!
      graph.steps.push({ ...step, kernel: emulated(step.kernel, target) })
      return made
    },
    kernels: ['linear_matrix'],
  }))

test('rows do not depend on how many others run', async () => {
  const device = await gpu()
  const at = (T: number) => everything({ x: ['T', 4, 8], taps: 7, O: 9, T }, {})
  const { alone: many } = await runOn(device, at(40))
  const { alone: few } = await runOn(device, at(7))
  const same = (7 * 4 - 3) * 9 // rows whose window ends within the shorter signal
  expectClose(few!.subarray(0, same), many!.subarray(0, same), 0)
})

test('a signal that lacks rows is as one that is shorter', async () => {
  const x = noise(2 * 7 * 8)
  const of = (shape: Shape, data: Float32Array, missing: number): Case => ({
    operands: {
      x: { shape, data },
      w: { shape: [9, 56] },
      up: { shape: [30, 24] },
      bias: { shape: [9] },
      bias6: { shape: [6] },
    },
    counts: { T: 2 },
    op({ x, w, up, bias, bias6 }) {
      const { value } = conv1d(x!, { w: w!, bias: bias!, taps: 7 }, { dilation: 3, missing })
      return { y: convTranspose1d(value, { w: up!, bias: bias6!, taps: 10 }, { missing }).value }
    },
  })
  const { y: short } = await runOn(cpuDevice('test'), of([11, 8], x.subarray(0, 11 * 8), 0))
  const { y: long } = await runOn(cpuDevice('test'), of(['T', 7, 8], x.fill(0, 11 * 8), 3))
  expect(short!.length).toBe((11 * 5 - 1) * 6)
  expectClose(long!.subarray(0, short!.length), short!, 0)
})

test('a window by hand', async () => {
  const c: Case = {
    operands: {
      x: { shape: ['T', 2, 1], data: Float32Array.of(1, 2, 3, 4) },
      w: { shape: [1, 8], data: Float32Array.of(1, 10, 100, 0, 0, 0, 0, 0) },
      bias: { shape: [1], data: Float32Array.of(0.5) },
    },
    counts: { T: 2 },
    op: ({ x, w, bias }) => ({ y: conv1d(x!, { w: w!, bias: bias!, taps: 3 }).value }),
  }
  for (const device of await devices()) expect([...(await runOn(device, c)).y!]).toEqual([210.5, 321.5, 432.5, 43.5])
})

describe('the product', () => {
  const kept = (label: string, shape: Shape, format: Format = 'f32') => tensor({ label, shape, format, place: 'kept' })
  const picked = (target: Target, C: number, O: number, format: 'f32' | 'f16', dilation = 1): string => {
    const graph = new Graph(target)
    const conv = { w: kept('w', [O, Math.ceil((7 * C) / 8) * 8], format), bias: kept('bias', [O]), taps: 7 }
    conv1d(graph.input('x', ['T', 64, C], format), conv, { dilation })
    return graph.steps.map(({ kernel, constants: c }) => `${kernel.name} ${c.BM} x ${c.BN}`).join()
  }
  const hardware: Target = { ...cpuTarget, kind: 'webgpu', software: false, limits: defaultLimits }
  const matrix: Target = {
    ...hardware,
    features: new Set(['chromium-experimental-subgroup-matrix', 'shader-f16', 'subgroups']),
    limits: { ...defaultLimits, workgroupBytes: 48 * 1024 },
    matrix: { M: 16, N: 16, K: 16 },
    subgroupSize: 32,
  }

  test('runs on matrix units, in tiles, or plainly where neither fits', () => {
    expect(picked(matrix, 192, 192, 'f16', 9)).toBe('linear_matrix 128 x 96')
    expect(picked(matrix, 384, 384, 'f16')).toBe('linear_matrix 128 x 128')
    expect(picked(matrix, 96, 96, 'f16', 3)).toBe('linear_matrix 128 x 96')
    expect(picked(matrix, 96, 1, 'f16')).toBe('conv1d 256 x 1')
    expect(picked({ ...matrix, disabled: new Map([['linear_matrix', 'no']]) }, 96, 96, 'f16')).toBe(
      'linear_tiled 128 x 32',
    )
    expect(picked(matrix, 96, 128, 'f32')).toBe('linear_tiled 128 x 128')
    expect(picked(hardware, 16, 32, 'f16')).toBe('linear_tiled 128 x 32')
    expect(picked(hardware, 1, 64, 'f32')).toBe('conv1d 16 x 16')
    expect(picked({ ...matrix, software: true }, 96, 96, 'f16')).toBe('conv1d 16 x 16')
  })

  test('knows its cost', () => {
    const graph = new Graph(cpuTarget)
    conv1d(graph.input('x', ['T', 4, 8]), { w: kept('w', [3, 56]), bias: kept('bias', [3]), taps: 7 })
    const [{ kernel, constants }] = graph.steps as [(typeof graph.steps)[0]]
    expect(kernel.cost(constants, counts({ T: 5 }))).toEqual({
      flops: 2 * 20 * 56 * 3,
      bytes: 4 * (3 * 56 + 20 * (8 + 3)),
    })
  })
})

test('says what does not fit', () => {
  const graph = new Graph(cpuTarget)
  const input = (shape: Shape, format: Format = 'f32') => graph.input(`x${graph.inputs.size}`, shape, format)
  const x = input(['T', 6, 8])
  const conv = { w: input([5, 56]), bias: input([5]), taps: 7 }
  const alpha = input([1, 5, 1])
  expect(() => conv1d(x, { ...conv, taps: 3 })).toThrow('conv1d: w (x1) has shape [5,56], expected [5,24]')
  expect(() => conv1d(x, conv, { stride: 4 })).toThrow('has 6 rows, which 7 taps at a stride of 4 leave as')
  expect(() => conv1d(x, conv, { padding: 0 })).toThrow('has 6 rows')
  expect(() => conv1d(input([2, 3, 8]), conv)).toThrow("shape [2,3,8], expected [L, C], ['T', C] or ['T', rate, C]")
  expect(() => conv1d(input(['T', 8], 'u32'), conv)).toThrow('format u32, expected f32 or f16')
  expect(() => conv1d(x, conv, { gives: ['snaked'] })).toThrow('snake gives what is snaked')
  expect(() => conv1d(x, conv, { snake: alpha })).toThrow('snake gives what is snaked')
  expect(() => conv1d(x, conv, { add: input(['T', 5]) })).toThrow('add (x6) has shape [T,5], expected [T,6,5]')
  expect(() => convTranspose1d(x, conv)).toThrow('conv_transpose1d: 7 taps, expected twice a stride')
  expect(() => convTranspose1d(x, { ...conv, taps: 4 })).toThrow('w (x1) has shape [5,56], expected [10,16]')
})
