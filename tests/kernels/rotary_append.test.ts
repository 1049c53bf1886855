import { describe, expect, test } from 'vitest'
import { cpuDevice } from '../../src/device/cpu.ts'
import { Graph } from '../../src/graph/graph.ts'
import { type Segment, segmentTables, tableShapes } from '../../src/graph/segments.ts'
import { type RotaryAppend, rotaryAppend } from '../../src/kernels/rotary_append.ts'
import { type Case, expectWithin, gpu, noise, runOn, sameOnEveryDevice } from '../check.ts'
import { fixtureTensors } from '../fixtures.ts'

const row = (length: number, kvStart: number, kvBefore: number): Segment => {
  return { length, from: 0, to: 0, prefixStart: 0, prefixLength: 0, kvStart, kvBefore }
}

function rotaryCase(segments: readonly Segment[], heads: RotaryAppend, cacheRows: number, format?: 'f16'): Case {
  const { counts, segments: table, segmentOf } = segmentTables(segments, 1)
  const width = 2 * heads.kvHeads * heads.headDim
  return {
    operands: {
      x: { shape: ['T', (heads.heads + 2 * heads.kvHeads) * heads.headDim], ...(format && { format }) },
      rope: { shape: ['T', heads.headDim] },
      kv: { shape: ['*', width], data: noise(cacheRows * width, 9), kept: true, ...(format && { format }) },
      segments: { shape: tableShapes.segments, format: 'u32', data: table },
      segmentOf: { shape: tableShapes.segmentOf, format: 'u32', data: segmentOf },
    },
    counts,
    op: ({ x, rope, kv, segments, segmentOf }) => ({
      q: rotaryAppend(x!, rope!, kv!, { segments: segments!, segmentOf: segmentOf! }, heads),
      kv: kv!,
    }),
    tolerance: format ? 1e-3 : 1e-5, // f16 rounds by 2^-11
    kernels: ['rotary_append'],
  }
}

/** Goldens [T, heads, D] from position 37, angles as the models' tables make them. */
const goldens = fixtureTensors('ops/ops.safetensors')
const given = goldens.names.filter((name) => /^rope\.interleaved\..*x$/.test(name))

describe.each(given)('golden %s', (name) => {
  test.each([true, false])('interleaved: %s', async (interleaved) => {
    const { shape, data } = goldens.get(name)
    const [T, H, D] = shape as [number, number, number]
    const golden = name.replace(/x$/, 'out').replace('interleaved', interleaved ? 'interleaved' : 'half')
    const want = goldens.get(golden).data
    const x = new Float32Array(T * (H + 2) * D) // the heads, then a key and a value
    for (let t = 0; t < T; t++) x.set(data.subarray(t * H * D, (t + 1) * H * D), t * (H + 2) * D)
    const rope = new Float32Array(T * D)
    for (let t = 0; t < T; t++)
      for (let i = 0; i < D / 2; i++) {
        const exact = (37 + t) * 10000 ** ((-2 * i) / D)
        const rounded = Math.fround((37 + t) * Math.fround(1 / Math.fround(10000 ** ((2 * i) / D))))
        const angle = interleaved ? rounded : exact
        rope[t * D + i] = Math.cos(angle)
        rope[t * D + D / 2 + i] = Math.sin(angle)
      }
    const c = rotaryCase([row(T, 0, 0)], { heads: H, kvHeads: 1, headDim: D, interleaved }, T)
    const operands = { ...c.operands, x: { ...c.operands.x!, data: x }, rope: { ...c.operands.rope!, data: rope } }
    for (const device of [cpuDevice('test'), await gpu()]) {
      const { q } = await runOn(device, { ...c, operands })
      expectWithin(q!, want, 1e-5, 0, `${golden} on ${device.kind}`)
    }
  })
})
test('there are goldens', () => expect(given.length).toBeGreaterThan(0))

describe('is the same on every device', () => {
  const shapes: [string, RotaryAppend][] = [
    ['neighbours', { heads: 4, kvHeads: 1, headDim: 64, interleaved: true }],
    ['halves', { heads: 6, kvHeads: 2, headDim: 24, interleaved: false }],
    ['one head', { heads: 1, kvHeads: 1, headDim: 8, interleaved: true }],
  ]
  test.each(shapes)('%s, several segments, some continued', (_, heads) =>
    sameOnEveryDevice(rotaryCase([row(5, 0, 2), row(1, 20, 9), row(70, 40, 0)], heads, 120)),
  )
  test('half-precision values and cache', () =>
    sameOnEveryDevice(rotaryCase([row(3, 0, 0), row(1, 5, 2)], shapes[0]![1], 10, 'f16')))
})

test('says what does not fit', () => {
  const graph = new Graph(cpuDevice('test').target)
  const table = {
    segments: graph.input('segments', tableShapes.segments, 'u32'),
    segmentOf: graph.input('segmentOf', ['T'], 'u32'),
  }
  const kv = graph.input('kv', ['*', 16])
  const call = (headDim: number, x = graph.input(`x ${headDim}`, ['T', 3 * headDim])) =>
    rotaryAppend(x, graph.input(`rope ${headDim}`, ['T', headDim]), kv, table, {
      heads: 1,
      kvHeads: 1,
      headDim,
      interleaved: true,
    })
  expect(() => call(16)).toThrow('kv (kv) has shape [*,16], expected [*,32]')
  expect(() => call(8, graph.input('narrow', ['T', 8]))).toThrow('x (narrow) has shape [T,8], expected [T,24]')
})
