import { describe, expect, test } from 'vitest'
import { cpuDevice } from '../../src/device/cpu.ts'
import { Graph } from '../../src/graph/graph.ts'
import { defaultLimits, type Target } from '../../src/graph/target.ts'
import { addLayerNorm, layerNorm } from '../../src/kernels/layer_norm.ts'
import type { Summing } from '../../src/kernels/lib/slices.ts'
import { type Case, expectWithin, gpu, noise, runOn, sameOnEveryDevice } from '../check.ts'
import { fixtureTensors } from '../fixtures.ts'

const goldens = fixtureTensors('ops/ops.safetensors')
const names = goldens.names.filter((name) => /^norm\.d\d+\.layer_eps/.test(name))

test.each(names)('golden %s', async (name) => {
  const [, width, eps] = name.match(/^norm\.d(\d+)\.layer_eps(.*)$/)!
  const golden = (key: string): Float32Array => goldens.get(`norm.d${width}.${key}`).data
  const d = Number(width)
  const c: Case = {
    operands: {
      x: { shape: ['T', d], data: golden('x') },
      w: { shape: [2, d], data: Float32Array.of(...golden('w'), ...golden('b')), kept: true },
    },
    counts: { T: golden('x').length / d },
    op: ({ x, w }) => ({ y: layerNorm(x!, w!, { eps: Number(eps) }) }),
  }
  for (const device of [cpuDevice('test'), await gpu()]) {
    const { y } = await runOn(device, c)
    expectWithin(y!, goldens.get(name).data, 2e-6, 1e-5, `${name} on ${device.kind}`)
  }
})
test('there are goldens', () => expect(names.length).toBeGreaterThan(1))

const rowsCase = (T: number, width: number, summing: Summing, x = noise(T * width)): Case => ({
  operands: { x: { shape: ['T', width], data: x }, w: { shape: [2, width], kept: true } },
  counts: { T },
  op: ({ x, w }) => ({ y: layerNorm(x!, w!, { eps: 1e-5, summing }) }),
  kernels: [summing === 'shared' ? 'layer_norm_shared' : 'layer_norm'],
})

describe.each(['alone', 'shared'] as const)('is the same on every device, %s', (summing) => {
  test.each([
    [1, 6],
    [3, 1],
    [7, 100],
    [2, 2048],
    [33, 64],
  ])('%i rows of %i', (T, width) => sameOnEveryDevice(rowsCase(T, width, summing)))

  test('rows with one huge value, and rows far from zero', async () => {
    const x = noise(4 * 256, 3)
    x[70] = 1.6e4
    for (let i = 512; i < 768; i++) x[i]! += 1000
    await sameOnEveryDevice({ ...rowsCase(4, 256, summing, x), tolerance: 1e-4 }) // f32 has 2^-13 left behind 1000
  })
})

describe.each(['alone', 'shared'] as const)('with a product in parts and its bias, %s', (summing) => {
  test.each([
    [5, 64, 1],
    [3, 100, 2],
    [4, 6, 3],
  ])('%i rows of %i, %i parts', (T, width, blocks) =>
    sameOnEveryDevice({
      operands: {
        x: { shape: ['T', width] },
        parts: { shape: ['T', blocks * width] },
        bias: { shape: [width], kept: true },
        w: { shape: [2, width], kept: true },
      },
      counts: { T },
      op: ({ x, parts, bias, w }) => ({ ...addLayerNorm(x!, parts!, bias!, w!, { eps: 1e-6, summing }) }),
      kernels: [summing === 'shared' ? 'add_layer_norm_shared' : 'add_layer_norm'],
    }),
  )

  test('is the norm of the sum', async () => {
    const { sum, y, same } = await runOn(cpuDevice('test'), {
      operands: {
        x: { shape: [1, 2], data: Float32Array.of(1, 2) },
        parts: { shape: [1, 4], data: Float32Array.of(3, 5, 7, 11) },
        bias: { shape: [2], data: Float32Array.of(100, 200) },
        w: { shape: [2, 2] },
      },
      op: ({ x, parts, bias, w }) => {
        const { x: sum, y } = addLayerNorm(x!, parts!, bias!, w!, { eps: 1e-6, summing })
        return { sum, y, same: layerNorm(sum, w!, { eps: 1e-6, summing }) }
      },
    })
    expect([...sum!]).toEqual([111, 218])
    expect(y).toEqual(same)
  })
})

test.each([
  [2, 111, 218],
  [3, 104, 207],
])('the rows of a run say how many parts there are: %i rows', async (T, ...sums) => {
  const parts = { 2: [3, 5, 7, 11, 3, 5, 7, 11], 3: [3, 5, 3, 5, 3, 5] }[T]!
  const heights = [{ upTo: 2, COUNT: 2 }, { COUNT: 1 }]
  const c: Case = {
    operands: {
      x: { shape: ['T', 2], data: Float32Array.from({ length: 2 * T }, (_, i) => 1 + (i % 2)) },
      sums: { shape: ['T', 4], data: Float32Array.from({ length: 4 * T }, (_, i) => parts[i] ?? 0) },
      bias: { shape: [2], data: Float32Array.of(100, 200), kept: true },
      w: { shape: [2, 2], kept: true },
    },
    counts: { T },
    op: ({ x, sums, bias, w }) => ({ ...addLayerNorm(x!, { sums: sums!, heights }, bias!, w!, { eps: 1e-6 }) }),
  }
  await sameOnEveryDevice(c)
  const { x } = await runOn(cpuDevice('test'), c)
  expect([...x!]).toEqual(Array.from({ length: T }, () => sums).flat())
})

test('half-precision rows, in and out', () =>
  sameOnEveryDevice({
    operands: { x: { shape: ['T', 64], format: 'f16' }, w: { shape: [2, 64], kept: true } },
    counts: { T: 9 },
    op: ({ x, w }) => {
      const half = layerNorm(x!, w!, { eps: 1e-5, format: 'f16' })
      return { y: layerNorm(half, w!, { eps: 1e-5 }) }
    },
    tolerance: 4e-3, // f16 rounds by 2^-11, and the second norm scales that up
  }))

test('the target decides', () => {
  const picked = (target: Partial<Target>): string => {
    const graph = new Graph({ ...cpuDevice('test').target, limits: defaultLimits, ...target })
    layerNorm(graph.input('x', ['T', 8]), graph.input('w', [2, 8]), { eps: 0 })
    return graph.steps[0]!.kernel.name
  }
  expect(picked({ software: true })).toBe('layer_norm')
  expect(picked({ software: false })).toBe('layer_norm_shared')
  expect(picked({ software: false, disabled: new Map([['layer_norm_shared', 'tested']]) })).toBe('layer_norm')
})

test('says what does not fit', () => {
  const graph = new Graph(cpuDevice('test').target)
  const x = graph.input('x', ['T', 8])
  expect(() => layerNorm(x, graph.input('w', [8]), { eps: 0 })).toThrow('w (w) has shape [8], expected [2,8]')
  expect(() => layerNorm(x, graph.input('half', [2, 8], 'f16'), { eps: 0 })).toThrow('format f16, expected f32')
  const [bias, w] = [graph.input('bias', [8]), graph.input('both', [2, 8])]
  expect(() => addLayerNorm(x, graph.input('parts', ['T', 12]), bias, w, { eps: 0 })).toThrow(
    "expected x's 8 up to 8 times",
  )
  expect(() => addLayerNorm(x, x, graph.input('short', [4]), w, { eps: 0 })).toThrow('has shape [4], expected [8]')
})
