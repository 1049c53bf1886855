import { expect, test } from 'vitest'
import { cpuDevice } from '../../src/device/cpu.ts'
import { type Segment, segmentTables, tableShapes } from '../../src/graph/segments.ts'
import { linear } from '../../src/kernels/linear.ts'
import { type QkNormRope, qkNormRope } from '../../src/kernels/qk_norm_rope.ts'
import { type Case, expectWithin, gpu, noise, runOn, sameOnEveryDevice } from '../check.ts'
import { fixtureJson, fixtureTensors } from '../fixtures.ts'

const ops = fixtureTensors('ops/ops.safetensors')
const row = (length: number, kvStart: number, kvBefore = 0): Segment => ({
  ...{ length, kvStart, kvBefore },
  ...{ from: 0, to: 0, prefixStart: 0, prefixLength: 0 },
})

interface Given {
  readonly x?: Float32Array
  readonly norms?: Float32Array
  readonly rope?: Float32Array
  readonly cache?: 'f32' | 'f16'
  readonly tolerance?: number
}

/** The pool is full of noise, so that what is not to be written is compared too. */
function caseOf(options: QkNormRope, rows: readonly Segment[], given: Given = {}): Case {
  const { heads, kvHeads, headDim, rotary } = options
  const { counts, ...tables } = segmentTables(rows, 1)
  const poolRows = Math.max(...rows.map((s) => s.kvStart + s.kvBefore + s.length)) + 1
  const width = 2 * kvHeads * headDim
  const data = <K extends keyof Given>(name: K) => given[name] && { data: given[name] }
  return {
    operands: {
      x: { shape: ['T', 2 * (heads + kvHeads) * headDim], ...data('x') },
      norms: { shape: [2, headDim], kept: true, ...data('norms') },
      rope: { shape: ['T', rotary], ...data('rope') },
      kv: { shape: ['*', width], kept: true, data: noise(poolRows * width, 9), format: given.cache ?? 'f32' },
      segments: { shape: tableShapes.segments, format: 'u32', data: tables.segments },
      segmentOf: { shape: tableShapes.segmentOf, format: 'u32', data: tables.segmentOf },
    },
    counts,
    op: ({ x, norms, rope, kv, segments, segmentOf }) => ({
      q: qkNormRope(
        x!,
        norms!,
        rope!,
        kv!,
        { segments: segments!, segmentOf: segmentOf! },
        { summing: 'alone', ...options },
      ),
      kv: kv!,
    }),
    tolerance: given.tolerance ?? 1e-5,
    kernels: [options.summing === 'shared' ? 'qk_norm_rope_shared' : 'qk_norm_rope'],
  }
}

const { rope: ropes } = fixtureJson<{ rope: Record<string, { rotary_dims: number }> }>('ops/inputs.json')

// Rotation is linear, so that norms of weight 0 give the golden divided by the root mean square.
test.each(Object.entries(ropes))('rotary golden %s', async (name, { rotary_dims: rotary }) => {
  const { shape, data: golden } = ops.get(`rope.mrope.${name}.x`)
  const [heads, tokens, headDim] = shape as [number, number, number]
  const out = ops.get(`rope.mrope.${name}.out`).data
  const [cos, sin] = [ops.get(`rope.mrope.${name}.cos`).data, ops.get(`rope.mrope.${name}.sin`).data]
  const rope = cos.map((c, i) => (i % rotary < rotary / 2 ? c : sin[i]!))
  const width = 4 * heads * headDim
  const x = new Float32Array(tokens * width)
  const want = new Float32Array(tokens * heads * headDim)
  for (let t = 0; t < tokens; t++) {
    for (let h = 0; h < heads; h++) {
      const head = golden.subarray((h * tokens + t) * headDim, (h * tokens + t + 1) * headDim)
      x.set(head, t * width + 2 * h * headDim)
      x.set(head, t * width + (2 * heads + h) * headDim)
      const rms = Math.sqrt(head.reduce((sum, v) => sum + v * v, 0) / headDim)
      const rotated = out.subarray((h * tokens + t) * headDim, (h * tokens + t + 1) * headDim)
      want.set(
        rotated.map((v) => v / rms),
        (t * heads + h) * headDim,
      )
    }
  }
  const options = { heads, kvHeads: heads, headDim, rotary, eps: 0 }
  const given = { x, rope, norms: new Float32Array(2 * headDim) }
  const { q, kv } = await runOn(cpuDevice('test'), caseOf(options, [row(tokens, 1)], given))
  expectWithin(q!, want, 1e-5, 0, 'q')
  const keys = want.slice()
  for (let t = 0; t < tokens; t++)
    keys.set(kv!.subarray((t + 1) * 2 * heads * headDim, (2 * t + 3) * heads * headDim), t * heads * headDim)
  expectWithin(keys, want, 1e-5, 0, 'keys')
})

const normed = ops.names.flatMap((name) => /^norm\.d(\d+)\.rms_zero_centred$/.exec(name)?.[1] ?? []).map(Number)

test.each(normed)('norm golden d%i', async (headDim) => {
  const get = (name: string) => ops.get(`norm.d${headDim}.${name}`).data
  const [w, head, want] = [get('w'), get('x'), get('rms_zero_centred')]
  const tokens = head.length / headDim
  const x = new Float32Array(tokens * 4 * headDim) // query, gate, key, value
  for (let t = 0; t < tokens; t++) {
    const one = head.subarray(t * headDim, (t + 1) * headDim)
    for (const part of [0, 2, 3]) x.set(one, (4 * t + part) * headDim)
  }
  const options = { heads: 1, kvHeads: 1, headDim, rotary: 8, eps: 1e-6 }
  const rope = Float32Array.from({ length: tokens * 8 }, (_, i) => (i % 8 < 4 ? 1 : 0)) // no rotation
  const norms = Float32Array.of(...w, ...w)
  const { q, kv } = await runOn(cpuDevice('test'), caseOf(options, [row(tokens, 0)], { x, rope, norms }))
  expectWithin(q!, want, 0, 1e-5, 'q')
  for (let t = 0; t < tokens; t++) {
    const [keys, values] = [kv!.subarray(2 * t * headDim), kv!.subarray((2 * t + 1) * headDim)]
    expectWithin(keys.subarray(0, headDim), want.subarray(t * headDim, (t + 1) * headDim), 0, 1e-5, 'keys')
    expect(values.subarray(0, headDim)).toEqual(head.subarray(t * headDim, (t + 1) * headDim))
  }
})

test('there were goldens', () => expect(normed.length + Object.keys(ropes).length).toBeGreaterThan(4))

const published: QkNormRope = { heads: 8, kvHeads: 2, headDim: 256, rotary: 64, eps: 1e-6 }
const small: QkNormRope = { heads: 4, kvHeads: 2, headDim: 64, rotary: 16, eps: 1e-6 }
const odd: QkNormRope = { heads: 3, kvHeads: 1, headDim: 12, rotary: 8, eps: 1e-6 }
const several = [row(3, 5), row(1, 20, 4), row(66, 30), row(2, 0)]

test.each([
  ['published heads', published, [row(5, 1)]],
  ['small heads', small, [row(1, 1)]],
  ['small heads, several rows', small, several],
  ['odd heads, several rows', odd, several],
  ['one head that turns as a whole', { heads: 1, kvHeads: 1, headDim: 32, rotary: 32, eps: 1e-5 }, [row(7, 2, 3)]],
] as const)('%s', (_, options, rows) => sameOnEveryDevice(caseOf(options, rows)))

test.each([
  ['published heads', published, [row(5, 1)]],
  ['small heads, several rows', small, several],
  ['odd heads, several rows', odd, several],
] as const)('shared: %s', (_, options, rows) => sameOnEveryDevice(caseOf({ ...options, summing: 'shared' }, rows)))

// Half precision keeps 11 bits: 2^-12 of the value, and the values stay below 8.
test('an f16 cache', () => sameOnEveryDevice(caseOf(small, several, { cache: 'f16', tolerance: 5e-4 })))

test('f16 queries, read as products with a unit matrix', () => {
  const c = caseOf({ ...small, format: 'f16' }, several, { tolerance: 5e-4 })
  const unit = Float32Array.from({ length: 256 ** 2 }, (_, i) => Number(i % 257 === 0))
  return sameOnEveryDevice({
    ...c,
    operands: { ...c.operands, unit: { shape: [256, 256], data: unit } },
    op: (operands, graph) => {
      const { q, kv } = c.op(operands, graph)
      return { q: linear(q!, operands.unit!), kv: kv! }
    },
    kernels: ['qk_norm_rope', 'linear'],
  })
})

test('a row has the same bits whatever its neighbours', async () => {
  const { heads, kvHeads, headDim, rotary } = small
  const [first, length] = [4, 66]
  const width = 2 * (heads + kvHeads) * headDim
  const [x, rope] = [noise(72 * width, 3), noise(72 * rotary, 4)]
  const among = await runOn(await gpu(), caseOf(small, several, { x, rope }))
  const own = { x: x.subarray(first * width), rope: rope.subarray(first * rotary) }
  const alone = await runOn(await gpu(), caseOf(small, [row(length, 30)], own))
  const size = heads * headDim
  expect(alone.q!.length).toBe(length * size)
  expect(alone.q).toEqual(among.q!.subarray(first * size, (first + length) * size))
  const [from, to] = [30 * 2 * kvHeads * headDim, (30 + length) * 2 * kvHeads * headDim]
  expect(alone.kv!.subarray(from, to)).toEqual(among.kv!.subarray(from, to))
})

test('only the rows of the tokens are written', async () => {
  const c = caseOf(small, several)
  const { kv } = await runOn(cpuDevice('test'), c)
  const before = c.operands.kv!.data!
  const width = 2 * small.kvHeads * small.headDim
  const written = several.flatMap((s) => Array.from({ length: s.length }, (_, i) => s.kvStart + s.kvBefore + i))
  for (let r = 0; r < before.length / width; r++) {
    const same = before.subarray(r * width, (r + 1) * width).every((v, i) => v === kv![r * width + i])
    expect(same, `row ${r}`).toBe(!written.includes(r))
  }
})

test('wrong shapes are named', async () => {
  const run = (options: QkNormRope, given: QkNormRope) =>
    runOn(cpuDevice('test'), {
      ...caseOf(given, several),
      op: ({ x, norms, rope, kv, segments, segmentOf }) => ({
        q: qkNormRope(x!, norms!, rope!, kv!, { segments: segments!, segmentOf: segmentOf! }, options),
      }),
    })
  await expect(run({ ...small, heads: 3 }, small)).rejects.toThrow(
    'qk_norm_rope: x (x) has shape [T,768], expected [T,640]',
  )
  await expect(run({ ...small, rotary: 32 }, small)).rejects.toThrow('rope (rope) has shape [T,16], expected [T,32]')
  await expect(run({ ...small, rotary: 12 }, { ...small, rotary: 12 })).rejects.toThrow(
    'a head has 64 values of which 12 turn',
  )
})
