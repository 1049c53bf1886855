import { describe, expect, test } from 'vitest'
import { cpuDevice } from '../../src/device/cpu.ts'
import { Graph } from '../../src/graph/graph.ts'
import { defaultLimits, type LinearRule } from '../../src/graph/target.ts'
import { type Format, type Shape, type Tensor, tensor } from '../../src/graph/tensor.ts'
import { choose, linearTable } from '../../src/kernels/lib/linear_tiles.ts'
import { linear, linearParts } from '../../src/kernels/linear.ts'
import { gelu, geluTanh } from '../../src/kernels/lib/activation.ts'
import { swiglu } from '../../src/kernels/swiglu.ts'
import { type Case, counts, expectClose, gpu, noise, runOn, sameOnEveryDevice } from '../check.ts'
import { withUnits } from './matrix_units.ts'

const weights = (shape: Shape, format: Format = 'f32') => ({ shape, format, kept: true })
const product = (T: number, IN: number, OUT: number, format?: Format): Case => ({
  operands: { x: { shape: ['T', IN] }, w: weights([OUT, IN], format) },
  counts: { T },
  op: ({ x, w }) => ({ y: linear(x!, w!) }),
  kernels: ['linear'],
})

test('the twin is a matrix product with the transposed weight, plus the residual', async () => {
  const x = Float32Array.of(1, 2, 3, 4, 5, 6, 7, 8, 1, 0, 0, 0, 0, 0, 0, -1)
  const w = Float32Array.of(1, 1, 1, 1, 1, 1, 1, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.5, 0)
  const { y, z } = await runOn(cpuDevice('test'), {
    operands: {
      x: { shape: ['T', 8], data: x },
      w: { ...weights([3, 8]), data: w },
      r: { shape: ['T', 3], data: Float32Array.of(10, 20, 30, 40, 50, 60) },
    },
    counts: { T: 2 },
    op: ({ x, w, r }) => ({ y: linear(x!, w!), z: linear(x!, w!, { add: r! }) }),
  })
  expect([...y!]).toEqual([36, 4, 3.5, 0, 0, 0])
  expect([...z!]).toEqual([46, 24, 33.5, 40, 50, 60])
})

test('the twin of gelu is that of the product and its bias', async () => {
  const { product, erf, tanh } = await runOn(cpuDevice('test'), {
    operands: { x: { shape: ['T', 8] }, w: weights([5, 8]), b: { shape: [5] } },
    counts: { T: 3 },
    op: ({ x, w, b }) => ({
      product: linear(x!, w!, { bias: b! }),
      erf: linear(x!, w!, { bias: b!, finish: 'gelu' }),
      tanh: linear(x!, w!, { bias: b!, finish: 'gelu_tanh' }),
    }),
  })
  expectClose(erf!, product!.map(gelu), 1e-7)
  expectClose(tanh!, product!.map(geluTanh), 1e-7)
})

describe('is the same on every device', () => {
  test.each([
    [1, 8, 1],
    [1, 256, 1000],
    [2, 24, 3],
    [3, 64, 64],
    [5, 40, 67],
    [17, 136, 5],
    [40, 256, 130],
    [65, 96, 257],
    [300, 32, 33],
  ])('%i tokens, %i -> %i', (T, IN, OUT) => sameOnEveryDevice(product(T, IN, OUT)))

  test.each(['f16', 'bf16'] as const)('%s weights', (format) => sameOnEveryDevice(product(7, 72, 37, format)))
  test('q8 weights', () => sameOnEveryDevice(product(7, 192, 37, 'q8')))

  test.each(['f32', 'f16', 'bf16'] as const)('%s weights, with a residual', (format) =>
    sameOnEveryDevice({
      operands: { x: { shape: ['T', 80] }, w: weights([51, 80], format), r: { shape: ['T', 51] } },
      counts: { T: 9 },
      op: ({ x, w, r }) => ({ y: linear(x!, w!, { add: r! }) }),
      kernels: ['linear'],
    }),
  )

  test.each(['plain', 'target'] as const)('a bias, %s', (pick) =>
    sameOnEveryDevice({
      operands: { x: { shape: ['T', 80] }, w: weights([51, 80], 'f16'), b: { shape: [51], kept: true } },
      counts: { T: 9 },
      op: ({ x, w, b }) => ({ y: linear(x!, w!, { bias: b! }) }),
      pick,
    }),
  )

  test.each([
    ['gelu', 'plain'],
    ['gelu', 'target'],
    ['gelu_tanh', 'plain'],
    ['gelu_tanh', 'target'],
  ] as const)('a bias and %s, %s', (finish, pick) =>
    sameOnEveryDevice({
      operands: { x: { shape: ['T', 80] }, w: weights([51, 80], 'f16'), b: { shape: [51], kept: true } },
      counts: { T: 9 },
      op: ({ x, w, b }) => ({ y: linear(x!, w!, { bias: b!, finish }) }),
      pick,
    }),
  )

  test('rows that are read back, and a fixed number of rows', async () => {
    await sameOnEveryDevice({
      operands: { x: { shape: ['R', 32] }, w: weights([13, 32]) },
      counts: { T: 50, R: 6 },
      op: ({ x, w }) => ({ y: linear(x!, w!) }),
    })
    await sameOnEveryDevice({
      operands: { x: { shape: [5, 32] }, w: weights([13, 32]) },
      counts: { T: 2 },
      op: ({ x, w }) => ({ y: linear(x!, w!) }),
    })
  })

  test('half-precision values in and out', () =>
    sameOnEveryDevice({
      operands: { x: { shape: ['T', 96] }, up: weights([64, 48], 'f16'), down: weights([21, 64], 'bf16') },
      counts: { T: 19 },
      op: ({ x, up, down }) => ({
        y: linear(linear(swiglu(x!, { format: 'f16' }), up!, { format: 'f16' }), down!),
      }),
      tolerance: 4e-3, // two roundings to f16, 2^-11 each, in sums of 48 and 64
      kernels: ['swiglu', 'linear', 'linear'],
    }))
})

describe('SwiGLU', () => {
  test('up first is the same with the halves of w exchanged', async () => {
    const [gate, up] = [noise(12 * 24, 2), noise(12 * 24, 3)]
    const run = (w: Float32Array, finish: 'swiglu' | 'swiglu_up_first') => {
      const c: Case = {
        operands: { x: { shape: ['T', 24] }, w: { ...weights([24, 24]), data: w } },
        counts: { T: 5 },
        op: ({ x, w }) => ({ y: linear(x!, w!, { finish }) }),
      }
      return Promise.all([runOn(cpuDevice('test'), c), sameOnEveryDevice(c)])
    }
    const [want] = await run(Float32Array.of(...gate, ...up), 'swiglu')
    const [got] = await run(Float32Array.of(...up, ...gate), 'swiglu_up_first')
    expect(got).toEqual(want)
  })

  test('is swiglu of the product', async () => {
    const { y, want } = await runOn(cpuDevice('test'), {
      operands: { x: { shape: ['T', 24] }, w: weights([14, 24]) },
      counts: { T: 3 },
      op: ({ x, w }) => ({ y: linear(x!, w!, { finish: 'swiglu' }), want: swiglu(linear(x!, w!)) }),
    })
    expectClose(y!, want!, 1e-6)
  })

  test.each([
    [1, 16, 2, 'f32'],
    [9, 80, 54, 'bf16'],
  ] as const)('%i tokens, %i -> %i, %s weights', (T, IN, OUT, format) =>
    sameOnEveryDevice({
      operands: { x: { shape: ['T', IN] }, w: weights([OUT, IN], format) },
      counts: { T },
      op: ({ x, w }) => ({ y: linear(x!, w!, { finish: 'swiglu' }) }),
      kernels: ['linear'],
    }),
  )
})

describe('parts', () => {
  test.each([
    [2, 2],
    [4, 3], // five times eight columns make two, two and one
    ['auto', 1],
  ] as const)('split %s: %i that add up', async (split, SK) => {
    const parts = (x: Tensor, w: Tensor) => linearParts(x, w, { split })
    const c: Case = {
      operands: { x: { shape: ['T', 40] }, w: weights([21, 40], 'f16') },
      counts: { T: 6 },
      op: ({ x, w }) => ({ parts: parts(x!, w!).sums, y: linear(x!, w!) }),
    }
    await sameOnEveryDevice(c)
    const { parts: got, y } = await runOn(await gpu(), c)
    expect(got!.length).toBe(6 * SK * 21)
    const sum = y!.map((_, at) => {
      const [row, column] = [Math.floor(at / 21), at % 21]
      return Array.from({ length: SK }, (_, z) => got![(row * SK + z) * 21 + column]!).reduce((a, b) => a + b)
    })
    expectClose(sum, y!, 1e-5)
  })
})

describe('the plan', () => {
  const w = tensor({ label: 'w', shape: [2048, 1024], format: 'f16', place: 'kept' })
  const plan = (tile: Record<string, number>): LinearRule => ({
    ...{ on: 'f32', N: 2048, K: 1024, variant: 'linear', order: { SK: 3, BK: 8 } },
    heights: [{ upTo: 8, tile: { ...tile, GROUP_Y: 1 } }, { tile: { ...tile, GROUP_Y: 8 } }],
  })
  const tile = { RM: 1, RN: 2, GROUP_X: 32 }
  const hardware = { ...cpuDevice('test').target, software: false }

  test('nearest in N and K is chosen, the first of several', () => {
    const table = [
      { N: 2048, K: 6144 },
      { N: 2048, K: 2048, first: true },
      { N: 2048, K: 2048 },
      { N: 12288, K: 2048 },
    ]
    expect(choose(table, 2048, 3000)).toBe(table[1])
    expect(choose(table, 2048, 4000)).toBe(table[0])
    expect(choose(table, 100000, 64)).toBe(table[3])
    expect(choose([], 1, 1)).toBe(undefined)
  })

  test('of the target goes before the table, and a run takes the tile of its height', () => {
    const graph = new Graph({ ...hardware, tuning: [plan(tile)] })
    const { sums, heights } = linearParts(graph.input('x', ['T', 1024]), w)
    expect(heights).toEqual([{ COUNT: 3 }])
    expect(sums.shape).toEqual(['T', 3 * 2048])
    expect(graph.steps.map((step) => step.bindings.y)).toEqual([sums, sums])
    const grids = (T: number) => graph.steps.map((step) => step.workgroups(counts({ T, R: 99 })))
    const none = [0, 0, 0]
    expect(grids(1)).toEqual([[32, 1, 3], none])
    expect(grids(8)).toEqual([[32, 8, 3], none])
    expect(grids(9)).toEqual([none, [32, 2, 3]])
  })

  test('says of each height how many parts its workgroups leave, and leaves none to who does not add', () => {
    const limits = { ...defaultLimits, workgroupBytes: 48 * 1024, invocations: 1024 }
    const matrix = (SL: number) => ({ BM: 64, BN: 64, WM: 2, WN: 2, SL })
    const heights = [{ upTo: 8, tile: matrix(1) }, { upTo: 64, tile: matrix(2) }, { tile: matrix(4) }]
    const rule = {
      on: 'matrix',
      N: 2048,
      K: 1024,
      variant: 'linear_matrix',
      order: { SK: 4, BK: 32 },
      heights,
    } as const
    const recorded = (rules: readonly LinearRule[], record: (x: Tensor) => unknown) => {
      const graph = new Graph({ ...withUnits({ ...hardware, limits }, 16), tuning: rules })
      record(graph.input('x', ['T', 1024], 'f16'))
      return graph
    }
    const parts = recorded([rule], (x) => {
      const { sums, heights } = linearParts(x, w)
      expect(sums.shape).toEqual(['T', 4 * 2048])
      expect(heights).toEqual([{ upTo: 8, COUNT: 4 }, { upTo: 64, COUNT: 2 }, { COUNT: 1 }])
    })
    const grids = [8, 64, 65].map((T) => parts.steps.map((step) => step.workgroups(counts({ T }))[2]))
    expect(grids).toEqual([
      [4, 0, 0],
      [0, 2, 0],
      [0, 0, 1],
    ])
    const { steps } = recorded([rule], (x) => linear(x, w))
    expect(steps.map(({ constants: { SK, SL } }) => [SK, SL])).toEqual([
      [1, 1],
      [1, 1],
      [1, 1],
    ])
    const whole = { ...rule, order: { SK: 4, BK: 32 }, heights: [{ tile: matrix(4) }] }
    const [step] = recorded([whole], (x) => linear(x, w)).steps
    expect(step!.constants).toMatchObject({ SK: 4, SL: 4, KS: 256, Y_WIDTH: 2048 })
  })

  test('of the table fits its own heights, and has one order of sums for all', () => {
    for (const { variant, heights } of linearTable) {
      const upTo = heights.map((height) => height.upTo ?? Number.POSITIVE_INFINITY)
      expect(upTo).toEqual([...upTo].sort((a, b) => a - b))
      expect(upTo.at(-1)).toBe(Number.POSITIVE_INFINITY)
      const ordering = variant === 'linear_matrix' ? ['SK'] : ['SK', 'BK'] // fragments add up alike whatever BK
      for (const { tile } of heights) expect(Object.keys(tile).filter((name) => ordering.includes(name))).toEqual([])
    }
    expect(linearTable.length).toBeGreaterThan(5)
  })
})

test('a row does not depend on how many others run with it', async () => {
  const device = await gpu()
  const x = noise(1000 * 64)
  const { y: many } = await runOn(device, withRows(1000))
  for (const T of [1, 3, 40]) {
    const { y: few } = await runOn(device, withRows(T))
    expectClose(few!, many!.subarray(0, T * 45), 0)
  }

  function withRows(T: number): Case {
    const { operands, ...rest } = product(T, 64, 45, 'f16')
    return { ...rest, operands: { ...operands, x: { shape: ['T', 64], data: x.subarray(0, T * 64) } } }
  }
})

test('knows its cost', () => {
  const graph = new Graph(cpuDevice('test').target)
  const w = tensor({ label: 'w', shape: [24, 16], format: 'f16', place: 'kept' })
  linear(graph.input('x', ['R', 16]), w)
  linear(graph.input('five', [5, 16]), w)
  const costs = graph.steps.map(({ kernel, constants }) => kernel.cost(constants, counts({ T: 99, R: 3 })))
  expect(costs).toEqual([
    { flops: 2 * 3 * 16 * 24, bytes: 24 * 16 * 2 + 3 * (16 + 24) * 4 },
    { flops: 2 * 5 * 16 * 24, bytes: 24 * 16 * 2 + 5 * (16 + 24) * 4 },
  ])
})

test('says what does not fit', () => {
  const graph = new Graph(cpuDevice('test').target)
  const kept = (shape: Shape, format: Format = 'f32') => tensor({ label: 'weight', shape, format, place: 'kept' })
  const x = graph.input('x', ['T', 16])
  const w = kept([4, 16])
  expect(() => linear(x, kept([4, 24]))).toThrow('linear: w (weight) has shape [4,24], expected [4,16]')
  expect(() => linear(x, graph.input('w', ['T', 16]))).toThrow('linear: w (w) has shape [T,16], expected [OUT, 16]')
  expect(() => linear(x, kept([4, 16], 'u32'))).toThrow('linear: w (weight) has format u32')
  expect(() => linear(graph.input('odd', ['T', 12]), kept([4, 12]))).toThrow('12 columns, expected a multiple of 8')
  expect(() => linear(graph.input('forty', ['T', 40]), kept([4, 40], 'q8'))).toThrow('expected a multiple of 32')
  expect(() => linear(graph.input('cube', ['T', 2, 16]), w)).toThrow('shape [T,2,16], expected [T,16]')
  expect(() => linear(x, w, { add: graph.input('r', ['T', 5]) })).toThrow('add (r) has shape [T,5], expected [T,4]')
  expect(() => linear(x, w, { add: graph.input('r4', ['T', 4]), format: 'f16' })).toThrow('expected f32 with add')
  const add = graph.input('r44', ['T', 4])
  expect(() => linear(x, w, { add, finish: 'swiglu' })).toThrow('two of add, bias and swiglu')
  const bias = graph.input('bias', [4])
  expect(() => linear(x, w, { add, bias })).toThrow('two of add, bias and swiglu')
  expect(() => linear(x, w, { bias: graph.input('b5', [5]) })).toThrow('bias (b5) has shape [5], expected [4]')
  expect(() => linear(x, kept([5, 16]), { finish: 'swiglu' })).toThrow(
    'has 5 rows, expected as many of the gate as of up',
  )
  expect(() => linearParts(x, w, { split: 0 })).toThrow('a sum in 0 parts, expected a positive integer')
})
