import { describe, expect, test } from 'vitest'
import { ShapeError } from '../../src/errors.ts'
import { Graph } from '../../src/graph/graph.ts'
import { deltaRule } from '../../src/kernels/delta_rule.ts'
import { deltaScanMatrix } from '../../src/kernels/delta_scan_matrix.ts'
import { type Case, gpu, noise, relativeNorm, runOn, sameOnEveryDevice } from '../check.ts'
import { type DeltaData, deltaOperands, golden, goldens, part, randomDelta, statesAfter } from './delta_cases.ts'
import { COLD_MS, compiled, expectCompiles, nvidia, onUnits } from './delta_matrix_cases.ts'

/** The goldens', so that all tests share a pipeline: barriers are slow to compile on software drivers. */
const dims = { keyHeads: 2, valueHeads: 2, keyWidth: 32, valueWidth: 32 }

function inHalves(data: DeltaData) {
  const { counts, operands } = deltaOperands(data)
  return { counts, operands: { ...operands, qkv: { ...operands.qkv, format: 'f16' } } } satisfies Partial<Case>
}

/** Made-up chunks: U and W small enough that states stay near 1, P with zeros behind the diagonal. */
function scanCase(rows: readonly number[], withState: boolean): Case {
  const { valueHeads: NV, keyWidth: DK, valueWidth: DV } = dims
  const { counts, operands } = inHalves(randomDelta(dims, rows, 3, withState))
  const { qkv, state, segments } = operands
  const wide = NV * 2 * DK
  const position = rows.flatMap((length) => Array.from({ length }, (_, i) => i % 64))
  const p = noise(counts.T * NV * 64, 21).map((v, i) => (i % 64 > position[Math.floor(i / (NV * 64))]! ? 0 : v / 8))
  return {
    counts,
    operands: {
      state,
      segments,
      qkv,
      x: { shape: ['T', wide], format: 'f16', data: noise(counts.T * wide, 22).map((v) => v / 16) },
      p: { shape: ['T', NV * 64], format: 'f16', data: p },
      u: { shape: ['T', NV * DV], data: noise(counts.T * NV * DV, 23).map((v) => v / 16) },
      decay: { shape: ['T', 2 * NV], data: noise(counts.T * 2 * NV, 24).map((v) => (1 + v) / 2) },
    },
    op: ({ qkv, x, p, u, decay, state, segments }, graph) => ({
      o: onUnits(graph, () =>
        deltaScanMatrix(qkv!, { x: x!, p: p!, u: u!, decay: decay! }, state!, { segments: segments! }, dims),
      ),
      state: state!,
    }),
    tolerance: 1e-3, // S and V', about 1, are rounded to f16 by up to 2^-11 of them
    kernels: ['delta_scan_matrix'],
  }
}

const ruleCase = (data: DeltaData): Case => ({
  ...inHalves(data),
  op: ({ qkv, gates, state, segments, chunks }, graph) => ({
    o: onUnits(graph, () =>
      deltaRule(qkv!, gates!, state!, { segments: segments!, chunks: chunks! }, data.dims, { form: 'matrix' }),
    ),
    state: state!,
  }),
})

test.each(compiled)('compiles under Tint: heads of $keyWidth and $valueWidth', async (d) => {
  const graph = new Graph(nvidia)
  const { keyHeads: NK, valueHeads: NV, keyWidth: DK, valueWidth: DV } = d
  const qkv = graph.input('qkv', ['T', 2 * NK * DK + NV * DV], 'f16')
  const chunks = {
    x: graph.input('x', ['T', NV * 2 * DK], 'f16'),
    p: graph.input('p', ['T', NV * 64], 'f16'),
    u: graph.input('u', ['T', NV * DV]),
    decay: graph.input('decay', ['T', 2 * NV]),
  }
  const state = graph.input('state', ['*', NV, DK, DV])
  deltaScanMatrix(qkv, chunks, state, { segments: graph.input('segments', ['S', 8], 'u32') }, d)
  await expectCompiles(graph)
})

describe('on matrix units, emulated where there are none,', () => {
  test.each([true, false])('equals its twin on ragged segments, states: %s', (withState) =>
    sameOnEveryDevice(scanCase([70, 3, 64, 129, 1], withState)),
  )

  // Operands rounded to f16: 4e-4 to 1e-3 in double arithmetic, most of it from q and k, P, M, U and V' alike.
  // What is smaller than halves can be (6e-8), as a state that has all but decayed, is lost.
  const error = (got: Float32Array, want: Float32Array): number => {
    const norm = Math.hypot(...want)
    return (relativeNorm(got, want) * norm) / (norm + 1e-4 * Math.sqrt(want.length))
  }
  const names = goldens.filter((name) => name.startsWith('gdn.d32.'))
  test.each(names)(
    'after delta_chunk_matrix, %s',
    async (name) => {
      const data = golden(name)
      const results = await runOn(await gpu(), ruleCase(data))
      expect(error(results.o!, data.out), 'out').toBeLessThan(2e-3)
      expect(error(statesAfter(results, data), data.state), 'state').toBeLessThan(2e-3)
    },
    COLD_MS,
  )

  test('a segment has the same bits among others as alone', async () => {
    const data = randomDelta(dims, [70, 3, 129], 7, true)
    const together = await runOn(await gpu(), ruleCase(data))
    const one = part(data, 2, 3)
    const alone = await runOn(await gpu(), ruleCase(one))
    expect(alone.o!.length).toBeGreaterThan(0)
    expect(together.o!.slice(-alone.o!.length)).toEqual(alone.o)
    const state = statesAfter(alone, one)
    expect(statesAfter(together, data).slice(-state.length)).toEqual(state)
  })

  test('130 tokens as 64 + 66 through a state have the bits of one run', async () => {
    const device = await gpu()
    const whole = randomDelta(dims, [130], 8)
    const cut = { ...whole, lengths: [64, 66] }
    const [first, second] = [part(cut, 0, 1), part(cut, 1, 2)]
    const results = await runOn(device, ruleCase(whole))
    const a = await runOn(device, ruleCase(first))
    const b = await runOn(device, ruleCase({ ...second, state0: statesAfter(a, first) }))
    expect(Float32Array.of(...a.o!, ...b.o!)).toEqual(results.o)
    expect(statesAfter(b, second)).toEqual(statesAfter(results, whole))
  })
})

test('wrong shapes are named', () => {
  const g = new Graph(nvidia)
  const tables = { segments: g.input('segments', ['S', 8], 'u32') }
  const state = g.input('state', ['*', 2, 32, 32])
  const p = g.input('p', ['T', 128], 'f16')
  const qkv = g.input('qkv', ['T', 192], 'f16')
  const chunks = {
    x: g.input('x', ['T', 128], 'f16'),
    p,
    u: g.input('u', ['T', 64]),
    decay: g.input('decay', ['T', 4]),
  }
  const scan = (given: object, into = state) => deltaScanMatrix(qkv, { ...chunks, ...given }, into, tables, dims)
  expect(() => scan({ decay: p })).toThrow(ShapeError)
  expect(() => scan({ decay: p })).toThrow('decay (p) has shape [T,128], expected [T,4]')
  expect(() => scan({}, p)).toThrow('state (p) has shape [T,128], expected [*,2,32,32]')
  expect(() => scan({ x: g.input('wide', ['T', 128]) })).toThrow('x (wide) has format f32, expected f16')
})
