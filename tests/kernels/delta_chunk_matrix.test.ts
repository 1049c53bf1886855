import { describe, expect, test } from 'vitest'
import { cpuDevice } from '../../src/device/cpu.ts'
import { ShapeError } from '../../src/errors.ts'
import { Graph } from '../../src/graph/graph.ts'
import { deltaChunkMatrix } from '../../src/kernels/delta_chunk_matrix.ts'
import { linear } from '../../src/kernels/linear.ts'
import { type Case, gpu, type Operand, runOn, sameOnEveryDevice } from '../check.ts'
import { type DeltaData, deltaOperands, part, randomDelta } from './delta_cases.ts'
import { COLD_MS, compiled, expectCompiles, nvidia, onUnits } from './delta_matrix_cases.ts'

/** One pipeline for all tests: barriers are slow to compile on software drivers. */
const dims = { keyHeads: 1, valueHeads: 2, keyWidth: 32, valueWidth: 16 }

/** The f16 results are read as products with a unit matrix. */
function chunkCase(data: DeltaData): Case {
  const { valueHeads: NV, keyWidth: DK } = data.dims
  const { counts, operands } = deltaOperands(data)
  const { state: _, ...rest } = operands
  const unit = (n: number): Operand => ({
    shape: [n, n],
    kept: true,
    data: Float32Array.from({ length: n * n }, (_, i) => Number(i % (n + 1) === 0)),
  })
  return {
    counts,
    operands: { ...rest, qkv: { ...rest.qkv, format: 'f16' }, unitX: unit(NV * 2 * DK), unitP: unit(NV * 64) },
    op: ({ qkv, gates, segments, chunks, unitX, unitP }, graph) => {
      const tables = { segments: segments!, chunks: chunks! }
      const { x, p, u, decay } = onUnits(graph, () => deltaChunkMatrix(qkv!, gates!, tables, data.dims))
      return { x: linear(x, unitX!), p: linear(p, unitP!), u, decay }
    },
    tolerance: 2e-3, // of operands about 1, rounded to f16 by up to 2^-11 of them, in sums of up to 64
    kernels: ['delta_chunk_matrix', 'linear', 'linear'],
  }
}

test.each(compiled)('compiles under Tint: heads of $keyWidth and $valueWidth', async (d) => {
  const graph = new Graph(nvidia)
  const { keyHeads: NK, valueHeads: NV, keyWidth: DK, valueWidth: DV } = d
  const tables = { segments: graph.input('segments', ['S', 8], 'u32'), chunks: graph.input('chunks', ['C', 2], 'u32') }
  deltaChunkMatrix(
    graph.input('qkv', ['T', 2 * NK * DK + NV * DV], 'f16'),
    graph.input('gates', ['T', 2 * NV]),
    tables,
    d,
  )
  await expectCompiles(graph)
})

describe('on matrix units, emulated where there are none,', () => {
  test(
    'equals its twin on ragged segments',
    () => sameOnEveryDevice(chunkCase(randomDelta(dims, [70, 3, 64, 129, 1], 3))),
    COLD_MS,
  )

  // A of repeated keys without decay is as large as it gets: ones below the diagonal.
  test('equals its twin where all keys are the same, and where decays sum to thousands', async () => {
    const same = randomDelta(dims, [64], 5)
    const strong = randomDelta(dims, [64], 5)
    for (let t = 0; t < 64; t++) {
      same.qkv.copyWithin(t * 96 + 32, 32, 64)
      same.gates.set([0, 0, 1, 1], t * 4)
      strong.gates[t * 4] = t < 60 ? -88 : -1e-3 * t
    }
    await sameOnEveryDevice(chunkCase(same))
    await sameOnEveryDevice(chunkCase(strong))
  })

  test('a segment has the same bits among others as alone', async () => {
    const data = randomDelta(dims, [70, 3], 7)
    const together = await runOn(await gpu(), chunkCase(data))
    const alone = await runOn(await gpu(), chunkCase(part(data, 1, 2)))
    for (const [name, values] of Object.entries(alone)) {
      expect(values.length).toBeGreaterThan(0)
      expect(together[name]!.slice(-values.length), name).toEqual(values)
    }
  })
})

test('wrong shapes are named, and what does not fit the units', () => {
  const g = new Graph({ ...nvidia, kind: cpuDevice('test').kind })
  const tables = { segments: g.input('segments', ['S', 8], 'u32'), chunks: g.input('chunks', ['C', 2], 'u32') }
  const [qkv, gates] = [g.input('qkv', ['T', 96], 'f16'), g.input('gates', ['T', 4])]
  const record = (d: object, x = qkv) => deltaChunkMatrix(x, gates, tables, { ...dims, ...d })
  expect(() => record({}, gates)).toThrow(ShapeError)
  expect(() => record({}, gates)).toThrow('qkv (gates) has shape [T,4], expected [T,96]')
  expect(() => record({ keyWidth: 24 })).toThrow('head widths are 24 and 16, expected multiples of 16 up to 128')
  expect(() => record({ valueWidth: 144 })).toThrow('head widths are 32 and 144')
})
