import { afterAll, describe, expect, test } from 'vitest'
import { create, globals } from 'webgpu'
import { cpuTarget } from '../../src/device/cpu.ts'
import { pipelines } from '../../src/device/webgpu/pipelines.ts'
import { Graph, type Step } from '../../src/graph/graph.ts'
import type { Segment } from '../../src/graph/segments.ts'
import { defaultLimits, type Target } from '../../src/graph/target.ts'
import { type MatrixTile, matrixVariant } from '../../src/kernels/attention_matrix.ts'
import { gatherRows } from '../../src/kernels/gather_rows.ts'
import { type Case, gpu, noise, runOn, sameOnEveryDevice } from '../check.ts'
import { caseOf, type Given, goldens, type Options, published, row, rows, small } from './attention_cases.ts'
import { emulated, hasUnits, withUnits } from './matrix_units.ts'

const limits = { ...defaultLimits, workgroupBytes: 48 * 1024, invocations: 1024 }
const nvidia = withUnits({ ...cpuTarget, kind: 'webgpu', software: false, cache: 'f16', limits }, 16)
const tiny: Options = { heads: 2, kvHeads: 1, headDim: 64 }
const vision: Options = { heads: 2, kvHeads: 2, headDim: 64, causal: false }
const three: Options = { heads: 3, kvHeads: 1, headDim: 128 }

function recorded(target: Target, options: Options, given: Given = { cache: 'f16', gate: true }): readonly Step[] {
  const graph = new Graph(target)
  const { operands, op } = caseOf(options, rows, given)
  op(Object.fromEntries(Object.entries(operands).map(([n, o]) => [n, graph.input(n, o.shape, o.format)])), graph)
  return graph.steps
}

describe('compiles under Tint', () => {
  const dawn = create(['backend=null', 'enable-dawn-features=allow_unsafe_apis']) // held: Dawn dies with it
  Object.assign(globalThis, globals)
  let device: GPUDevice | undefined
  afterAll(() => device?.destroy())

  test.each([
    ['tiny', tiny],
    ['small', small],
    ['three heads to a KV head', three],
    ['published', published],
    ['all see all', { ...small, causal: false }],
    ['a vision tower', { ...vision, heads: 16, kvHeads: 16 }],
  ] as const)('%s', async (_, options) => {
    const adapter = await dawn.requestAdapter()
    device ??= await adapter!.requestDevice({ requiredFeatures: [...adapter!.features] as GPUFeatureName[] })
    const shaders = pipelines(device)
    for (const format of ['f32', 'f16'] as const)
      for (const given of [{ cache: 'f16' }, { cache: 'f16', gate: true }] as const) {
        const steps = recorded(nvidia, { ...options, format }, given)
        expect(new Set(steps.map(({ kernel }) => kernel.name))).toEqual(new Set(['attention_matrix']))
        for (const step of steps) {
          const failure = await shaders.of(step).then(
            () => '',
            (error: Error) => error.message,
          )
          // This backend has 16 KiB of workgroup memory, which it counts after all else has been checked.
          expect(failure).toMatch(/^$|workgroup storage \(\d+ bytes\) is larger than the maximum/)
        }
      }
  })
})

test('is picked for an f16 cache where there are units of one size, unless it failed', () => {
  const names = (target: Target, options = published, given?: Given): string[] => [
    ...new Set(recorded(target, options, given).map(({ kernel }) => kernel.name)),
  ]
  expect(names(nvidia)).toEqual(['attention_matrix'])
  expect(names(nvidia, tiny)).toEqual(['attention_matrix'])
  expect(names(nvidia, published, { cache: 'f32' })).toEqual(['attention_tiled'])
  expect(names({ ...nvidia, disabled: new Map([['attention_matrix', 'wrong there']]) })).toEqual(['attention_tiled'])
  expect(names({ ...nvidia, features: new Set(['shader-f16', 'subgroups']) })).toEqual(['attention_tiled'])
  expect(names({ ...nvidia, limits: { ...limits, workgroupBytes: 16384 } })).toEqual(['attention_tiled'])
  expect(names({ ...nvidia, software: true })).toEqual(['attention'])
  expect(() => names({ ...nvidia, limits: defaultLimits }, { ...published, variant: 'matrix' })).toThrow(
    'attention: no tiles for 8/2 heads of 256 values; leave the variant open',
  )
})

test('one form of tiles serves each run', () => {
  const steps = recorded(nvidia, published)
  const serving = (T: number): unknown[] => {
    const counts = { T, S: 1, C: Math.ceil(T / 64), R: 1 }
    return steps.filter(({ workgroups }) => workgroups(counts)[0] > 0).map(({ constants }) => constants.TOKENS)
  }
  expect(serving(228)).toEqual([4])
  expect(serving(1024)).toEqual([8])
  expect(serving(4096)).toEqual([16])
  expect(new Set(steps.map(({ constants }) => constants.KEYS)).size).toBe(1) // all that bits depend on
})

test('says what does not fit', () => {
  const plain = recorded(nvidia, { ...published, variant: 'plain' })[0]!.kernel
  const misfit = (tile: MatrixTile, target = nvidia, heads: Options = published, cache: 'f16' | 'f32' = 'f16') =>
    matrixVariant(plain, { ...heads, cache }, target, tile)
  const tile = { rows: 64, subgroups: 8 }
  expect(misfit(tile)).toMatchObject({ constants: { TOKENS: 16, SUBGROUPS: 8 } })
  expect(misfit(tile, cpuTarget)).toBe('the device has no chromium-experimental-subgroup-matrix')
  expect(misfit(tile, nvidia, published, 'f32')).toBe('the cache is f32, expected f16')
  expect(misfit({ ...tile, rows: 24 })).toBe('fragments of 16 x 16 x 16 do not divide the tile')
  expect(misfit({ ...tile, rows: 128 })).toBe('8 x 2 fragments per subgroup, at most 4 x 2')
  expect(misfit({ ...tile, subgroups: 4 })).toBe('4 x 4 fragments per subgroup, at most 4 x 2')
  expect(misfit(tile, nvidia, { heads: 2, kvHeads: 1, headDim: 512 })).toBe(
    '4 x 4 fragments per subgroup, at most 4 x 2',
  )
  expect(misfit({ rows: 16, subgroups: 16 }, withUnits(nvidia, 8))).toBe('32 fragments in a row of q, at most 16')
  expect(misfit({ rows: 64, subgroups: 4 }, nvidia, small)).toBe('8 fragments of scores, at most 4')
  expect(misfit(tile, { ...nvidia, subgroupSize: 8 })).toBe('16 vec4u carried by an invocation, at most 8')
  expect(misfit(tile, { ...nvidia, limits: { ...limits, invocations: 128 } })).toBe('256 invocations, at most 128')
  expect(misfit(tile, { ...nvidia, limits: defaultLimits })).toBe('48656 bytes of workgroup memory, at most 16384')
})

/** The case with every step on matrix units: those of the device, or emulated ones of M x M with subgroups of 16. */
function onUnits(c: Case, M: number, tile: MatrixTile): Case {
  return {
    ...c,
    op(t, graph) {
      const made = c.op(t, graph)
      const real = hasUnits(graph.target)
      const target = real ? graph.target : { ...withUnits(graph.target, M, M, M, 16), limits }
      for (const [i, step] of graph.steps.entries()) {
        if (step.kernel.name !== 'attention') continue
        const { HEADS, KV_HEADS, D } = step.constants as Record<string, number>
        const heads = { heads: HEADS!, kvHeads: KV_HEADS!, headDim: D!, cache: step.bindings.kv!.format }
        const { CHUNK: _, KEYS: __, ...constants } = step.constants
        const variant = matrixVariant(step.kernel, heads, target, tile)
        if (typeof variant === 'string') throw new Error(variant)
        graph.steps[i] = {
          ...step,
          kernel: real ? variant.kernel : emulated(variant.kernel, graph.target),
          constants: { ...constants, ...variant.constants },
          workgroups: variant.workgroups,
        }
      }
      return made
    },
    kernels: (c.kernels ?? ['attention']).map((name) => (name === 'attention' ? 'attention_matrix' : name)),
  }
}
/** Results in f16 are read through gather_rows. */
function gathered(c: Case): Case {
  const T = c.counts!.T!
  const index = { shape: ['R'], format: 'u32', data: Uint32Array.from({ length: T }, (_, i) => i) } as const
  return {
    ...c,
    operands: { ...c.operands, index },
    counts: { ...c.counts, R: T },
    op: (t, graph) => ({ y: gatherRows(c.op(t, graph).y!, t.index!) }),
    kernels: ['attention', 'gather_rows'],
  }
}
const onTarget = async (c: Case, small: MatrixTile, real: MatrixTile): Promise<Case> =>
  hasUnits((await gpu()).target) ? onUnits(c, 16, real) : onUnits(c, 8, small)

/** What is emulated, of units of 8 x 8, and on real units of 16 x 16 the nearest to it. */
const low = (c: Case): Promise<Case> => onTarget(c, { rows: 8, subgroups: 4 }, { rows: 16, subgroups: 4 })
const high = (c: Case): Promise<Case> => onTarget(c, { rows: 16, subgroups: 8 }, { rows: 32, subgroups: 4 })
// As in attention.test.ts, and the weights are rounded too.
const half = { cache: 'f16', tolerance: 4e-3 } as const

describe('the shader, on matrix units, emulated where there are none, is the same', () => {
  test('prefix, fork and decode', async () => sameOnEveryDevice(await low(caseOf(small, rows, half))))

  test('with a gate, y in f16, 2 x 2 fragments', async () => {
    const wide = { heads: 4, kvHeads: 1, headDim: 128, format: 'f16' } as const
    const few = [row(9, 40, { prefixStart: 1, prefixLength: 30 })]
    await sameOnEveryDevice(await high(gathered(caseOf(wide, few, { ...half, gate: true }))))
  })

  test('all see all', async () => sameOnEveryDevice(await low(caseOf(vision, rows, half))))

  const chosen = goldens.filter(
    ({ options, name }) => options.headDim === 64 && options.heads === 2 * options.kvHeads && name.endsWith('causal'),
  )
  test.each(chosen)('$name', async ({ options, rows, q, kv }) =>
    sameOnEveryDevice(await low(caseOf(options, rows, { ...half, q, kv }))),
  )

  test('scores that rise from tile to tile, so that sums are scaled', async () => {
    const { heads, kvHeads, headDim } = tiny
    const q = noise(100 * heads * headDim, 3)
    const kv = noise(100 * 2 * kvHeads * headDim, 4)
    // The first half of a key looks where all queries do, further the later it comes.
    for (let i = 0; i < q.length; i++) if (i % headDim < 32) q[i] = 1
    for (let i = 0; i < kv.length; i++)
      if (i % (2 * headDim) < 32) kv[i] = (Math.floor(i / (2 * headDim)) * 10) / 32 - (i % 3) / 64
    await sameOnEveryDevice(await high(caseOf(tiny, [row(100, 0)], { q, kv, ...half, tolerance: 1e-2 })))
  })

  test('there were goldens', () => expect(chosen.length).toBeGreaterThan(0))
})

describe('a row has the same bits', () => {
  const size = tiny.heads * tiny.headDim
  const q = noise(76 * size, 3)
  const kv = noise(200 * 2 * tiny.kvHeads * tiny.headDim, 4)
  const bits = async (segments: readonly Segment[], from = 0, form = low): Promise<Float32Array> => {
    const given = { q: q.subarray(from * size), kv, cache: 'f16' } as const
    return (await runOn(await gpu(), await form(caseOf(tiny, segments, given)))).y!
  }

  test('whatever its neighbours, in low and in high tiles', async () => {
    const among = await bits(rows)
    expect(await bits(rows, 0, high)).toEqual(among)
    let first = 0
    for (const s of rows) {
      const alone = await bits([s], first)
      expect(alone.length).toBe(s.length * size)
      expect(alone).toEqual(among.subarray(first * size, (first + s.length) * size))
      first += s.length
    }
  })

  test('in one run, behind a prefix and decoded', async () => {
    const whole = await bits([row(70, 0)])
    const prefix = row(20, 50, { prefixStart: 0, prefixLength: 50 })
    for (const s of [prefix, row(20, 0, { kvBefore: 50 })])
      expect(await bits([s], 50)).toEqual(whole.subarray(50 * size))
    expect(await bits([row(1, 0, { kvBefore: 69 })], 69)).toEqual(whole.subarray(69 * size))
  })
})
