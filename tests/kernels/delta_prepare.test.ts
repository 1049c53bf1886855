import { expect, test } from 'vitest'
import { cpuDevice } from '../../src/device/cpu.ts'
import { ShapeError } from '../../src/errors.ts'
import { Graph } from '../../src/graph/graph.ts'
import { type DeltaDims, deltaPrepare } from '../../src/kernels/delta_prepare.ts'
import { type Case, expectWithin, gpu, noise, runOn, sameOnEveryDevice } from '../check.ts'

interface Values {
  readonly c?: Float32Array
  readonly x?: Float32Array
  /** A_log, then dt_bias. */
  readonly gateWeights?: Float32Array
}

function prepareCase(dims: DeltaDims, T: number, values: Values = {}): Case {
  const { keyHeads: NK, valueHeads: NV, keyWidth: DK, valueWidth: DV } = dims
  const channels = 2 * NK * DK + NV * DV
  const wide = channels + NV * DV + 2 * NV
  return {
    counts: { T },
    operands: {
      c: { shape: ['T', channels], data: values.c ?? noise(T * channels, 1) },
      x: { shape: ['T', wide], data: values.x ?? noise(T * wide, 2).map((v) => 6 * v) },
      gateWeights: { shape: [2, NV], data: values.gateWeights ?? noise(2 * NV, 3).map((v) => 3 * v), kept: true },
    },
    op: ({ c, x, gateWeights }) => ({ ...deltaPrepare(c!, x!, gateWeights!, dims) }),
    kernels: ['delta_prepare'],
  }
}

const cpu = cpuDevice('test')
const small = { keyHeads: 1, valueHeads: 1, keyWidth: 4, valueWidth: 4 }

/** Rows of the projection of `small` that hold these b and a in their last columns. */
const gateRows = (b: number[], a: number[]): Float32Array =>
  Float32Array.from(b.flatMap((v, t) => [...new Array<number>(16).fill(0), v, a[t]!]))

test.each<[DeltaDims, number]>([
  [{ keyHeads: 2, valueHeads: 4, keyWidth: 32, valueWidth: 32 }, 69],
  [{ keyHeads: 16, valueHeads: 16, keyWidth: 128, valueWidth: 128 }, 3],
  [{ keyHeads: 1, valueHeads: 3, keyWidth: 8, valueWidth: 4 }, 1],
])('equals its twin: %j, %i tokens', (dims, T) => sameOnEveryDevice(prepareCase(dims, T)))

// The numbers of a hand calculation: A_log = ln 2, dt_bias = 0.25, b = 0, 1, -1, a = 0.5, -0.5, 2.
test('heads are normed with eps on the sum, gates are the published formulas', async () => {
  const c = Float32Array.of(
    1,
    2,
    0,
    0,
    2,
    1,
    0,
    0,
    9,
    9,
    9,
    9,
    0,
    0,
    1e-3,
    0,
    0,
    0,
    0,
    0,
    9,
    9,
    9,
    9,
    3,
    0,
    0,
    4,
    0,
    0,
    5,
    12,
  )
  const x = gateRows([0, 1, -1], [0.5, -0.5, 2])
  const values = {
    c: Float32Array.of(...c, 9, 9, 9, 9),
    x,
    gateWeights: Float32Array.of(Math.LN2, 0.25),
  }
  const tiny = 1e-3 / Math.sqrt(1e-6 + 1e-6) / 2
  for (const device of [cpu, await gpu()]) {
    const { qkv, gates } = await runOn(device, prepareCase(small, 3, values))
    const r5 = Math.sqrt(5)
    const want = [
      0.5 / r5,
      1 / r5,
      0,
      0,
      2 / r5,
      1 / r5,
      0,
      0,
      0,
      0,
      tiny,
      0,
      0,
      0,
      0,
      0,
      0.3,
      0,
      0,
      0.4,
      0,
      0,
      5 / 13,
      12 / 13,
    ]
    expectWithin(
      qkv!.filter((_, i) => i % 12 < 8),
      Float32Array.from(want),
      1e-6,
      1e-6,
      'q^ and k^',
    )
    expect(qkv!.filter((_, i) => i % 12 >= 8)).toEqual(values.c.filter((_, i) => i % 12 >= 8))
    const g = [-2.273742, 0.5, -1.151879, 0.731059, -4.700413, 0.268941]
    expectWithin(gates!, Float32Array.from(g), 1e-6, 1e-6, 'gates')
  }
})

test('g is floored where nothing of a state would stay', async () => {
  const x = gateRows([0, 0, 0, 0], [-100, 20, 1e4, 3e38])
  const values = { c: noise(48), x, gateWeights: Float32Array.of(2, 0) }
  for (const device of [cpu, await gpu()]) {
    const { gates } = await runOn(device, prepareCase(small, 4, values))
    expect([0, 2, 4, 6].map((i) => gates![i])).toEqual([expect.closeTo(0, 6), -88, -88, -88])
  }
})

test('a token has the same bits among others as alone', async () => {
  const dims = { keyHeads: 2, valueHeads: 4, keyWidth: 32, valueWidth: 32 }
  const [channels, wide] = [256, 392]
  const c = noise(5 * channels, 11)
  const x = noise(5 * wide, 12)
  const device = await gpu()
  const all = await runOn(device, prepareCase(dims, 5, { c, x }))
  const alone = await runOn(device, prepareCase(dims, 1, { c: c.slice(-channels), x: x.slice(-wide) }))
  expect(all.qkv!.slice(-channels)).toEqual(alone.qkv)
  expect(all.gates!.slice(-8)).toEqual(alone.gates)
})

test('wrong shapes are named', () => {
  const g = new Graph(cpu.target)
  const [c, x] = [g.input('c', ['T', 12]), g.input('x', ['T', 18])]
  const one = g.input('one', [1])
  const two = g.input('two', [2, 1])
  expect(() => deltaPrepare(c, x, one, small)).toThrow(ShapeError)
  expect(() => deltaPrepare(c, x, one, small)).toThrow('gateWeights (one) has shape [1], expected [2,1]')
  expect(() => deltaPrepare(c, c, two, small)).toThrow('x (c) has shape [T,12], expected [T,18]')
  expect(() => deltaPrepare(c, x, two, { ...small, keyHeads: 2 })).toThrow('1 value heads, expected a multiple of 2')
  expect(() => deltaPrepare(c, x, two, { ...small, keyWidth: 6 })).toThrow('head widths 6 and 4')
})
