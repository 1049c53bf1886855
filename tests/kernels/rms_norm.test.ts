import { describe, expect, test } from 'vitest'
import { cpuDevice } from '../../src/device/cpu.ts'
import { Graph } from '../../src/graph/graph.ts'
import { gatherRows } from '../../src/kernels/gather_rows.ts'
import type { Summing } from '../../src/kernels/lib/slices.ts'
import { addRmsNorm, gatherAddRmsNorm, rmsNorm } from '../../src/kernels/rms_norm.ts'
import { defaultLimits, type Target } from '../../src/graph/target.ts'
import { type Case, expectWithin, gpu, noise, runOn, sameOnEveryDevice } from '../check.ts'
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
      op: ({ x, w }) => ({ y: rmsNorm(x!, w!, { eps: 1e-6, offset: 1, summing: 'alone' }) }),
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

/** The residual and its norm from `parts` partial sums, and the norm of three rows alone. */
function addCase(T: number, width: number, parts: number, summing: Summing, x = noise(T * width, 1)): Case {
  const suffix = summing === 'shared' ? '_shared' : ''
  return {
    operands: {
      x: { shape: ['T', width], data: x },
      parts: { shape: ['T', parts * width], data: noise(T * parts * width, 2) },
      w: { shape: [width], kept: true },
      index: { shape: ['R'], format: 'u32', data: Uint32Array.of(T - 1, 0, T >> 1) },
    },
    counts: { T, R: 3 },
    op: ({ x, parts, w, index }) => {
      const options = { eps: 1e-6, offset: 1, summing } as const
      const { x: sum, y } = addRmsNorm(x!, parts!, w!, options)
      const read = gatherAddRmsNorm(x!, parts!, w!, index!, options)
      return { sum, y, readSum: read.x, read: read.y }
    },
    kernels: [`add_rms_norm${suffix}`, `gather_add_rms_norm${suffix}`],
  }
}

describe.each(['alone', 'shared'] as const)('adds partial sums first, %s', (summing) => {
  test.each([
    [3, 6, 2],
    [5, 64, 1],
    [9, 1040, 4],
    [2, 36, 7],
  ])('%i rows of %i, %i parts', (T, width, parts) => sameOnEveryDevice(addCase(T, width, parts, summing)))

  test('is the norm of the sum, and a row has the same bits wherever it stands', async () => {
    const [T, width] = [5, 64]
    const x = noise(T * width, 1)
    const row = x.slice(4 * width)
    const device = await gpu()
    const all = await runOn(device, addCase(T, width, 2, summing, x))
    const parts = noise(T * 2 * width, 2)
    const part = (i: number, n: number): number => parts[(Math.floor(i / width) * 2 + n) * width + (i % width)]!
    const want = x.map((v, i) => v + Math.fround(part(i, 0) + part(i, 1)))
    expect(all.sum).toEqual(want)
    expect(all.readSum!.slice(0, width)).toEqual(all.sum!.slice(4 * width))
    expect(all.read!.slice(0, width)).toEqual(all.y!.slice(4 * width))
    const alone = addCase(1, width, 2, summing, row)
    const own = { ...alone.operands.parts!, data: parts.slice(8 * width) }
    const one = await runOn(device, { ...alone, operands: { ...alone.operands, parts: own } })
    expect(one.y).toEqual(all.y!.slice(4 * width))
  })
})

describe('parts by the rows of a run', () => {
  const width = 12
  const heights = [{ upTo: 3, COUNT: 4 }, { upTo: 6, COUNT: 2 }, { COUNT: 1 }]
  const x = noise(9 * width, 1)
  const quarters = noise(9 * 4 * width, 2)
  /** Rows of n parts each, of which some have been added already. */
  const inParts = (n: number): Float32Array => {
    const rows = Array.from({ length: 9 }, (_, row) =>
      Array.from({ length: n }, (_, part) =>
        Array.from({ length: width }, (_, i) => {
          const [a, b, c, d] = [0, 1, 2, 3].map((q) => quarters[(4 * row + (part * 4) / n + q) * width + i]!)
          return n === 4 ? a! : n === 2 ? a! + b! : Math.fround(a! + b!) + Math.fround(c! + d!)
        }),
      ),
    )
    return Float32Array.from(rows.flat(2))
  }
  const ofRows = (T: number, n: number): Case => ({
    operands: {
      x: { shape: ['T', width], data: x.slice(0, T * width) },
      sums: {
        shape: ['T', 4 * width],
        data: Float32Array.from({ length: T * 4 * width }, (_, i) => inParts(n)[i] ?? 0),
      },
      w: { shape: [width], kept: true },
      index: { shape: ['R'], format: 'u32', data: Uint32Array.of(1) },
    },
    counts: { T, R: 1 },
    op: ({ x, sums, w, index }) => {
      const parts = { sums: sums!, heights }
      return {
        ...addRmsNorm(x!, parts, w!, { eps: 1e-6 }),
        read: gatherAddRmsNorm(x!, parts, w!, index!, { eps: 1e-6 }).y,
      }
    },
  })

  test.each([
    [2, 4],
    [3, 4],
    [5, 2],
    [9, 1],
  ])('%i rows, in %i', async (T, n) => {
    await sameOnEveryDevice(ofRows(T, n))
    const device = await gpu()
    const [few, many] = [await runOn(device, ofRows(2, 4)), await runOn(device, ofRows(T, n))]
    expect(many.x!.slice(0, 2 * width)).toEqual(few.x)
    expect(many.y!.slice(0, 2 * width)).toEqual(few.y)
    expect(many.read).toEqual(few.read)
  })
})

describe('shared among invocations', () => {
  test.each([
    [1, 1],
    [7, 100],
    [2, 2048],
  ])('%i rows of %i', (T, width) =>
    sameOnEveryDevice({
      operands: { x: { shape: ['T', width] }, w: { shape: [width], kept: true } },
      counts: { T },
      op: ({ x, w }) => ({ y: rmsNorm(x!, w!, { eps: 1e-6, offset: 1, summing: 'shared' }) }),
      kernels: ['rms_norm_shared'],
    }),
  )
})

test('the target decides', () => {
  const picked = (target: Partial<Target>): string => {
    const graph = new Graph({ ...cpuDevice('test').target, limits: defaultLimits, ...target })
    rmsNorm(graph.input('x', ['T', 8]), graph.input('w', [8]), { eps: 0 })
    return graph.steps[0]!.kernel.name
  }
  expect(picked({ software: true })).toBe('rms_norm')
  expect(picked({ software: false })).toBe('rms_norm_shared')
  expect(picked({ software: false, disabled: new Map([['rms_norm_shared', 'tested']]) })).toBe('rms_norm')
})

test('says what does not fit', () => {
  const graph = new Graph(cpuDevice('test').target)
  const x = graph.input('x', ['T', 8])
  const w = graph.input('w', [8])
  expect(() => rmsNorm(x, graph.input('short', [4]), { eps: 0 })).toThrow('w (short) has shape [4], expected [8]')
  expect(() => rmsNorm(graph.input('cube', ['T', 2, 8]), w, { eps: 0 })).toThrow('shape [T,2,8], expected [T,8]')
  expect(() => rmsNorm(x, graph.input('half', [8], 'f16'), { eps: 0 })).toThrow('format f16, expected f32')
  expect(() => rmsNorm(graph.input('pool', ['*', 8]), w, { eps: 0 })).toThrow('pool is a pool')
  const wide = graph.input('wide', ['T', 20])
  expect(() => addRmsNorm(x, wide, w, { eps: 0 })).toThrow("parts (wide) has 20 columns, expected x's 8 up to 8 times")
  expect(() => gatherAddRmsNorm(x, x, w, w, { eps: 0 })).toThrow('index (w) has format f32, expected u32')
})
