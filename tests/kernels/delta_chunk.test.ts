import { expect, test } from 'vitest'
import { cpuDevice } from '../../src/device/cpu.ts'
import { ShapeError } from '../../src/errors.ts'
import { Graph } from '../../src/graph/graph.ts'
import { type ChunkTile, deltaChunk } from '../../src/kernels/delta_chunk.ts'
import { type Case, expectClose, gpu, runOn, sameOnEveryDevice } from '../check.ts'
import { type DeltaData, deltaOperands, golden, lengths, randomDelta } from './delta_cases.ts'

function chunkCase(data: DeltaData, tile: ChunkTile = { parts: 1 }): Case {
  const { counts, operands } = deltaOperands(data)
  const { state: _, ...rest } = operands
  return {
    counts,
    operands: rest,
    op: ({ qkv, gates, segments, chunks }) => ({
      ...deltaChunk(qkv!, gates!, { segments: segments!, chunks: chunks! }, data.dims, tile),
    }),
    kernels: ['delta_chunk'],
  }
}

const dims = { keyHeads: 2, valueHeads: 4, keyWidth: 32, valueWidth: 32 }

test.each(lengths)('equals its twin: %i tokens', (T) => sameOnEveryDevice(chunkCase(randomDelta(dims, [T], T))))

test('equals its twin on ragged segments', () =>
  sameOnEveryDevice(chunkCase(randomDelta({ ...dims, keyWidth: 8, valueWidth: 12 }, [70, 3, 64, 129, 1], 3))))

test('equals its twin with more columns than invocations', () =>
  sameOnEveryDevice(chunkCase(randomDelta({ keyHeads: 1, valueHeads: 2, keyWidth: 128, valueWidth: 132 }, [65], 4))))

// exp(-88 · 64) and its inverse are out of range, and a small decay behind a large one must not get lost.
test('decays that sum to thousands', async () => {
  const data = golden('gdn.d32.T130.extreme')
  expect(data.gates.reduce((sum, g) => Math.min(sum, g), 0)).toBeLessThan(-80)
  await sameOnEveryDevice(chunkCase(data))
  const strong = randomDelta({ keyHeads: 1, valueHeads: 1, keyWidth: 8, valueWidth: 4 }, [64], 5)
  for (let t = 0; t < 64; t++) strong.gates[t * 2] = t < 60 ? -88 : -1e-3 * t
  const { p, decay } = await runOn(await gpu(), chunkCase(strong))
  const want = await runOn(cpuDevice('test'), chunkCase(strong))
  expectClose(p!, want.p!, 1e-6)
  expect(decay![63 * 2 + 1]).toBe(1)
  expect(decay![60 * 2 + 1]).toBeCloseTo(Math.exp(-0.186), 6)
})

test('parts change no bit', async () => {
  const data = randomDelta({ ...dims, valueHeads: 2 }, [70, 3], 8)
  const [whole, parts] = [
    await runOn(await gpu(), chunkCase(data)),
    await runOn(await gpu(), chunkCase(data, { parts: 3 })),
  ]
  expect(whole.uw!.length).toBeGreaterThan(0)
  expect(parts).toEqual(whole)
})

test('P is zero behind the diagonal', async () => {
  for (const device of [cpuDevice('test'), await gpu()]) {
    const { p } = await runOn(device, chunkCase(randomDelta({ ...dims, keyHeads: 1, valueHeads: 1 }, [66], 6)))
    expect(p).toHaveLength(66 * 64)
    const behind = p!.filter((_, i) => i % 64 > Math.floor(i / 64) % 64)
    expect(behind.length).toBeGreaterThan(0)
    expect(behind.every((v) => v === 0)).toBe(true)
  }
})

test('wrong shapes are named', () => {
  const g = new Graph(cpuDevice('test').target)
  const tables = { segments: g.input('segments', ['S', 8], 'u32'), chunks: g.input('chunks', ['C', 2], 'u32') }
  const [qkv, gates] = [g.input('qkv', ['T', 256]), g.input('gates', ['T', 8])]
  expect(() => deltaChunk(gates, gates, tables, dims)).toThrow(ShapeError)
  expect(() => deltaChunk(gates, gates, tables, dims)).toThrow('qkv (gates) has shape [T,8], expected [T,256]')
  expect(() => deltaChunk(qkv, qkv, tables, dims)).toThrow('gates (qkv) has shape [T,256], expected [T,8]')
  expect(() => deltaChunk(qkv, gates, tables, { ...dims, keyWidth: 12 })).toThrow('key width 12, expected a multiple')
})
