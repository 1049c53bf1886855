import { expect, test } from 'vitest'
import { cpuDevice } from '../../src/device/cpu.ts'
import { ShapeError } from '../../src/errors.ts'
import { Graph } from '../../src/graph/graph.ts'
import type { DeltaDims } from '../../src/kernels/delta_prepare.ts'
import { deltaScan, type ScanTile } from '../../src/kernels/delta_scan.ts'
import { type Case, gpu, noise, runOn, sameOnEveryDevice } from '../check.ts'
import { deltaOperands, lengths, randomDelta } from './delta_cases.ts'

const dims = { keyHeads: 2, valueHeads: 4, keyWidth: 32, valueWidth: 32 }

/** Made-up chunks: [U | W] small enough that states stay near 1, P with zeros behind the diagonal. */
function scanCase(d: DeltaDims, rows: readonly number[], withState = false, tile: ScanTile = {}): Case {
  const { valueHeads: NV, keyWidth: DK, valueWidth: DV } = d
  const { counts, operands } = deltaOperands(randomDelta(d, rows, 3, withState))
  const { gates: _gates, ...rest } = operands
  const position = rows.flatMap((length) => Array.from({ length }, (_, i) => i % 64))
  const p = noise(counts.T * NV * 64, 21).map((v, i) => (i % 64 > position[Math.floor(i / (NV * 64))]! ? 0 : v / 8))
  return {
    counts,
    operands: {
      ...rest,
      uw: { shape: ['T', NV * (DV + DK)], data: noise(counts.T * NV * (DV + DK), 22).map((v) => v / 16) },
      p: { shape: ['T', NV * 64], data: p },
      decay: { shape: ['T', 2 * NV], data: noise(counts.T * 2 * NV, 23).map((v) => (1 + v) / 2) },
    },
    op: ({ qkv, uw, p, decay, state, segments }) => ({
      o: deltaScan(qkv!, { uw: uw!, p: p!, decay: decay! }, state!, { segments: segments! }, d, tile),
      state: state!,
    }),
    kernels: ['delta_scan'],
  }
}

test.each(lengths)('equals its twin: %i tokens', (T) => sameOnEveryDevice(scanCase(dims, [T])))

test('equals its twin on ragged segments with states', () =>
  sameOnEveryDevice(scanCase(dims, [70, 3, 64, 129, 1], true)))

test('equals its twin at the real widths', () =>
  sameOnEveryDevice(scanCase({ keyHeads: 2, valueHeads: 2, keyWidth: 128, valueWidth: 128 }, [65, 7], true)))

test('no tile changes a bit', async () => {
  const device = await gpu()
  const run = (tile?: ScanTile) => runOn(device, scanCase(dims, [70, 3], true, tile))
  const want = await run()
  expect(want.o!.length).toBeGreaterThan(0)
  for (const tile of [{ slice: 32 }, { tile: 8, slice: 16 }]) expect(await run(tile)).toEqual(want)
})

test('wrong shapes are named', () => {
  const g = new Graph(cpuDevice('test').target)
  const tables = { segments: g.input('segments', ['S', 8], 'u32') }
  const qkv = g.input('qkv', ['T', 256])
  const state = g.input('state', ['*', 4, 32, 32])
  const chunks = { uw: g.input('uw', ['T', 256]), p: g.input('p', ['T', 256]), decay: g.input('decay', ['T', 8]) }
  expect(() => deltaScan(qkv, { ...chunks, p: state }, state, tables, dims)).toThrow(ShapeError)
  expect(() => deltaScan(qkv, { ...chunks, p: state }, state, tables, dims)).toThrow('p (state) has shape [*,4,32,32]')
  expect(() => deltaScan(qkv, chunks, qkv, tables, dims)).toThrow('state (qkv) has shape [T,256], expected [*,4,32,32]')
  expect(() => deltaScan(qkv, chunks, state, tables, { ...dims, valueWidth: 24 })).toThrow('value width 24')
  expect(() => deltaScan(qkv, chunks, state, tables, { ...dims, keyWidth: 136 })).toThrow('key width 136')
  expect(() => deltaScan(qkv, chunks, state, tables, dims, { tile: 8, slice: 32 })).toThrow('slice is 32, expected 8')
})
