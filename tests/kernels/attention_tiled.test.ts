import { expect, test } from 'vitest'
import { cpuTarget } from '../../src/device/cpu.ts'
import { Graph } from '../../src/graph/graph.ts'
import { defaultLimits, type Target } from '../../src/graph/target.ts'
import { expectWithin, gpu, noise, runOn, sameOnEveryDevice } from '../check.ts'
import { caseOf, goldens, halfCase, type Options, row, rows, small } from './attention_cases.ts'

const tiled = (options: Options): Options => ({ ...options, variant: 'tiled' })

// Software drivers compile barriers slowly: one pipeline for each head geometry, and one that is not causal.
const chosen = goldens.filter(({ name }) => !name.endsWith('full') || name.includes('_d32_'))

test.each(chosen)('$name', async ({ options, rows, q, kv, want }) => {
  const { y } = await runOn(await gpu(), caseOf(tiled(options), rows, { q, kv }))
  expectWithin(y!, want, 1e-5, 0, 'y')
})

test('there were goldens', () => expect(chosen.length).toBeGreaterThan(8))

test.each([
  ['two heads to a KV head', small],
  ['three', { heads: 3, kvHeads: 1, headDim: 32 }],
  ['all see all', { heads: 2, kvHeads: 2, headDim: 32, causal: false }],
] as const)('%s, prefix, fork and decode', async (_, options) => {
  await sameOnEveryDevice({
    ...caseOf(tiled(options), rows, { gate: true }),
    kernels: ['attention_tiled', 'attention_tiled'],
  })
})

// As in attention.test.ts.
test('an f16 cache', () => sameOnEveryDevice(caseOf(tiled(small), rows, { cache: 'f16', tolerance: 4e-3 })))

test('half precision everywhere', () => sameOnEveryDevice(halfCase(tiled(small))))

test('a row has the same bits whatever its neighbours', async () => {
  const size = small.heads * small.headDim
  const q = noise(76 * size, 3)
  const kv = noise(200 * 2 * small.kvHeads * small.headDim, 4)
  const among = await runOn(await gpu(), caseOf(tiled(small), rows, { q, kv }))
  let first = 0
  for (const s of rows) {
    const own = q.subarray(first * size, (first + s.length) * size)
    const alone = await runOn(await gpu(), caseOf(tiled(small), [s], { q: own, kv }))
    expect(alone.y!.length).toBe(s.length * size)
    expect(alone.y).toEqual(among.y!.subarray(first * size, (first + s.length) * size))
    first += s.length
  }
})

test('high tiles, for runs that fill a large device with them, give the bits of low ones', async () => {
  const segments = [row(70, 0, { prefixStart: 75, prefixLength: 5 })]
  for (let i = 0; i < 64; i++) segments.push(row(1 + (i % 2), 80 + 2 * i))
  const size = small.heads * small.headDim
  const q = noise(166 * size, 3)
  const kv = noise(210 * 2 * small.kvHeads * small.headDim, 4)
  const many = caseOf(tiled(small), segments, { q, kv })
  expect(many.counts!.C).toBeGreaterThan(63)
  await sameOnEveryDevice(many)
  const among = await runOn(await gpu(), many)
  const alone = await runOn(await gpu(), caseOf(tiled(small), segments.slice(0, 1), { q, kv }))
  expect(alone.y!.length).toBe(70 * size)
  expect(among.y!.slice(0, 70 * size)).toEqual(alone.y)
})

test('one form of tiles serves each run', () => {
  const graph = new Graph({ ...cpuTarget, limits: { ...defaultLimits, workgroupBytes: 32768 }, software: false })
  const { operands, op } = caseOf({ heads: 8, kvHeads: 2, headDim: 256 }, rows)
  op(Object.fromEntries(Object.entries(operands).map(([n, o]) => [n, graph.input(n, o.shape, o.format)])), graph)
  const [low, high] = graph.steps.map(({ workgroups, kernel, constants }) => ({
    groups: (T: number) => workgroups({ T, S: 1, C: Math.ceil(T / 64), R: 1 }),
    flops: (T: number) => kernel.cost(constants, { T, S: 1, C: Math.ceil(T / 64), R: 1 }).flops,
  }))
  expect(graph.steps).toHaveLength(2)
  expect([low!.groups(228), high!.groups(228)]).toEqual([
    [2, 16, 4],
    [0, 0, 0],
  ])
  expect([low!.groups(4096), high!.groups(4096)]).toEqual([
    [0, 0, 0],
    [2, 4, 64],
  ])
  expect([low!.flops(4096), high!.flops(228)]).toEqual([0, 0])
})

test('a token has the same bits in one run, behind a prefix and decoded', async () => {
  const size = small.heads * small.headDim
  const q = noise(90 * size, 3)
  const kv = noise(90 * 2 * small.kvHeads * small.headDim, 4)
  const whole = await runOn(await gpu(), caseOf(tiled(small), [row(90, 0)], { q, kv }))
  for (const s of [row(20, 70, { prefixStart: 0, prefixLength: 70 }), row(20, 0, { kvBefore: 70 })]) {
    const { y } = await runOn(await gpu(), caseOf(tiled(small), [s], { q: q.subarray(70 * size), kv }))
    expect(y).toEqual(whole.y!.subarray(70 * size))
  }
})

test('hardware gets tiles where they fit, unless they failed there', () => {
  const hardware: Target = { ...cpuTarget, kind: 'webgpu', software: false }
  const disabled = new Map([['attention_tiled', 'the probe failed']])
  const picked = (target: Target, options: Options): string => {
    const graph = new Graph(target)
    const { operands, op } = caseOf(options, rows)
    op(Object.fromEntries(Object.entries(operands).map(([n, o]) => [n, graph.input(n, o.shape, o.format)])), graph)
    return graph.steps[0]!.kernel.name
  }
  expect(picked(hardware, small)).toBe('attention_tiled')
  expect(picked({ ...hardware, software: true }, small)).toBe('attention')
  expect(picked({ ...hardware, disabled }, small)).toBe('attention')
  expect(picked(hardware, { ...small, headDim: 12 })).toBe('attention')
})
