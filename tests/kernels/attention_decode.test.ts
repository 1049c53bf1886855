import { describe, expect, test } from 'vitest'
import { cpuDevice, cpuTarget } from '../../src/device/cpu.ts'
import { Graph } from '../../src/graph/graph.ts'
import { type Segment, segmentTables, tableShapes } from '../../src/graph/segments.ts'
import { type AttentionDecode, attentionDecode } from '../../src/kernels/attention_decode.ts'
import { type Case, expectClose, noise, runOn, sameOnEveryDevice } from '../check.ts'

/** Rows of one token, each behind its own cache rows, the last one behind a shared prefix too. */
const rows = (...before: number[]): Segment[] =>
  before.map((kvBefore, i) => {
    const prefix = i === before.length - 1 ? { prefixStart: 3, prefixLength: 5 } : { prefixStart: 0, prefixLength: 0 }
    return { length: 1, from: 0, to: 0, ...prefix, kvStart: 10 + 300 * i, kvBefore }
  })

function decodeCase(segments: readonly Segment[], shape: AttentionDecode, cache: 'f32' | 'f16' = 'f32'): Case {
  const { counts, ...tables } = segmentTables(segments, 1)
  const width = 2 * shape.kvHeads * shape.headDim
  return {
    operands: {
      x: { shape: ['T', (shape.heads + 2 * shape.kvHeads) * shape.headDim] },
      rope: { shape: ['T', shape.headDim] },
      kv: { shape: ['*', width], data: noise((10 + 300 * segments.length) * width, 9), kept: true, format: cache },
      segments: { shape: tableShapes.segments, format: 'u32', data: tables.segments },
      segmentOf: { shape: tableShapes.segmentOf, format: 'u32', data: tables.segmentOf },
      chunks: { shape: tableShapes.chunks, format: 'u32', data: tables.chunks },
    },
    counts,
    op: ({ x, rope, kv, segments, segmentOf, chunks }) => ({
      y: attentionDecode(x!, rope!, kv!, { segments: segments!, segmentOf: segmentOf!, chunks: chunks! }, shape),
      kv: kv!,
    }),
    tolerance: cache === 'f16' ? 2e-3 : 1e-5, // f16 rounds by 2^-11
    ...(shape.variant === 'fused' && { kernels: ['attention_decode', 'attention_join'] }),
  }
}

describe.each<[string, AttentionDecode]>([
  ['neighbours turn, two heads share keys', { heads: 4, kvHeads: 2, headDim: 64, interleaved: true, variant: 'fused' }],
  ['halves turn, six heads share keys', { heads: 12, kvHeads: 2, headDim: 32, interleaved: false, variant: 'fused' }],
])('is the same on every device, %s', (_, shape) => {
  test.each([[[0]], [[1, 127]], [[128, 129, 254]], [[290, 0]]])('behind %j cache rows', (before) =>
    sameOnEveryDevice(decodeCase(rows(...before), shape)),
  )
})

test('the geometry of Zonos, with a half-precision cache', () =>
  sameOnEveryDevice(
    decodeCase(rows(200, 131), { heads: 16, kvHeads: 4, headDim: 128, interleaved: true, variant: 'fused' }, 'f16'),
  ))

test('is the two ops apart', async () => {
  const shape = { heads: 4, kvHeads: 2, headDim: 32, interleaved: true } as const
  const apart = await runOn(cpuDevice('test'), decodeCase(rows(20, 7), { ...shape, variant: 'apart' }))
  const fused = await runOn(cpuDevice('test'), decodeCase(rows(20, 7), { ...shape, variant: 'fused' }))
  expectClose(fused.y!, apart.y!, 1e-6)
  expect(fused.kv).toEqual(apart.kv)
})

test('the target decides', () => {
  const picked = (target: Partial<Graph['target']>, headDim = 32): string[] => {
    const graph = new Graph({ ...cpuTarget, kind: 'webgpu', software: false, ...target })
    const u32 = (name: keyof typeof tableShapes) => graph.input(name, tableShapes[name], 'u32')
    const run = { segments: u32('segments'), segmentOf: u32('segmentOf'), chunks: u32('chunks') }
    const [x, rope] = [graph.input('x', ['T', 3 * headDim]), graph.input('rope', ['T', headDim])]
    const shape = { heads: 1, kvHeads: 1, headDim, interleaved: true }
    attentionDecode(x, rope, graph.input('kv', ['*', 2 * headDim]), run, shape)
    return graph.steps.map(({ kernel }) => kernel.name)
  }
  expect(picked({})).toEqual(['attention_decode', 'attention_join'])
  expect(picked({ software: true })).toEqual(['rotary_append', 'attention'])
  for (const name of ['attention_decode', 'attention_join'])
    expect(picked({ disabled: new Map([[name, 'wrong there']]) })).toContain('rotary_append')
  expect(picked({}, 24)).toContain('rotary_append')
})

test('says what does not fit', () => {
  const graph = new Graph(cpuTarget)
  const u32 = (name: keyof typeof tableShapes) => graph.input(name, tableShapes[name], 'u32')
  const run = { segments: u32('segments'), segmentOf: u32('segmentOf'), chunks: u32('chunks') }
  const shape = { heads: 1, kvHeads: 1, headDim: 32, interleaved: true }
  const [x, rope] = [graph.input('x', ['T', 96]), graph.input('rope', ['T', 32])]
  expect(() => attentionDecode(x, rope, graph.input('kv', ['*', 32]), run, shape)).toThrow(
    'kv (kv) has shape [*,32], expected [*,64]',
  )
})
