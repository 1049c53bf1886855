import { describe, expect, test } from 'vitest'
import { cpuDevice } from '../../src/device/cpu.ts'
import { sigmoid } from '../../src/kernels/lib/activation.ts'
import { expectClose, expectWithin, gpu, noise, runOn, sameOnEveryDevice } from '../check.ts'
import { caseOf, gateWidth, goldens, halfCase, type Options, published, row, rows, small } from './attention_cases.ts'

const plain = (options: Options): Options => ({ ...options, variant: 'plain' })

describe.each(goldens)('$name', ({ options, rows, q, kv, want }) => {
  test('the twin gives what PyTorch gives', async () => {
    const { y } = await runOn(cpuDevice('test'), caseOf(options, rows, { q, kv }))
    expectWithin(y!, want, 1e-5, 0, 'y')
  })
  test('so does every device', async () => {
    await sameOnEveryDevice({ ...caseOf(plain(options), rows, { q, kv }), kernels: ['attention'] })
    expectWithin((await runOn(await gpu(), caseOf(plain(options), rows, { q, kv }))).y!, want, 1e-5, 0, 'y')
  })
})

test('there were goldens', () => expect(goldens.length).toBeGreaterThan(10))

test.each([
  ['published heads', published],
  ['small heads', small],
  ['one KV head', { heads: 2, kvHeads: 1, headDim: 256 }],
  ['odd heads', { heads: 3, kvHeads: 3, headDim: 12 }],
  ['all see all', { ...small, causal: false }],
] as const)('%s, prefix, fork and decode', async (_, options) => {
  await sameOnEveryDevice({ ...caseOf(plain(options), rows), kernels: ['attention'] })
  await sameOnEveryDevice({ ...caseOf(plain(options), rows, { gate: true }), kernels: ['attention'] })
})

test('the gate multiplies', async () => {
  const { heads, headDim } = small
  const T = rows.reduce((n, s) => n + s.length, 0)
  const gate = noise(T * gateWidth(small), 7)
  const [{ y }, gated] = [
    await runOn(cpuDevice('test'), caseOf(small, rows)),
    await runOn(cpuDevice('test'), caseOf(small, rows, { gate })),
  ]
  const want = y!.map((v, i) => {
    const [t, h, d] = [Math.floor(i / (heads * headDim)), Math.floor(i / headDim) % heads, i % headDim]
    return v * sigmoid(gate[t * gateWidth(small) + h * 2 * headDim + headDim + d]!)
  })
  expectClose(gated.y!, want, 1e-6)
})

// The GPU rounds keys and values to 11 bits (2^-12 of values below 1), which moves scores of size 10 by about 2e-3.
test('an f16 cache', () => sameOnEveryDevice(caseOf(plain(small), rows, { cache: 'f16', tolerance: 4e-3 })))

test('half precision everywhere', () => sameOnEveryDevice(halfCase(plain(small))))

test('an f16 cache of f16 numbers costs nothing', () => {
  const kv = noise(200 * 2 * small.kvHeads * small.headDim, 5).map((v) => Math.round(v * 512) / 512)
  return sameOnEveryDevice(caseOf(plain(small), rows, { kv, cache: 'f16' }))
})

test('a row has the same bits whatever its neighbours', async () => {
  const size = small.heads * small.headDim
  const q = noise(76 * size, 3)
  const kv = noise(200 * 2 * small.kvHeads * small.headDim, 4)
  const among = await runOn(await gpu(), caseOf(plain(small), rows, { q, kv }))
  let first = 0
  for (const s of rows) {
    const own = q.subarray(first * size, (first + s.length) * size)
    const alone = await runOn(await gpu(), caseOf(plain(small), [s], { q: own, kv }))
    expect(alone.y!.length).toBe(s.length * size)
    expect(alone.y).toEqual(among.y!.subarray(first * size, (first + s.length) * size))
    first += s.length
  }
})

test('a token has the same bits in one run, behind a prefix and decoded', async () => {
  const size = small.heads * small.headDim
  const q = noise(90 * size, 3)
  const kv = noise(90 * 2 * small.kvHeads * small.headDim, 4)
  const whole = await runOn(await gpu(), caseOf(plain(small), [row(90, 0)], { q, kv }))
  const tail = { q: q.subarray(70 * size), kv }
  const prefix = row(20, 70, { prefixStart: 0, prefixLength: 70 })
  for (const s of [prefix, row(20, 0, { kvBefore: 70 })]) {
    const { y } = await runOn(await gpu(), caseOf(plain(small), [s], tail))
    expect(y).toEqual(whole.y!.subarray(70 * size))
  }
  const { y } = await runOn(
    await gpu(),
    caseOf(plain(small), [row(1, 0, { kvBefore: 89 })], { q: q.subarray(89 * size), kv }),
  )
  expect(y).toEqual(whole.y!.subarray(89 * size))
})

test('wrong shapes are named', async () => {
  const run = (given: Options, options: Options) => {
    const c = caseOf(given, rows)
    return runOn(cpuDevice('test'), { ...c, op: caseOf(options, rows).op })
  }
  await expect(run(small, { ...small, heads: 6 })).rejects.toThrow(
    'attention: q (q) has shape [T,256], expected [T,384]',
  )
  await expect(run(small, { ...small, kvHeads: 1 })).rejects.toThrow('kv (kv) has shape [*,256], expected [*,128]')
  await expect(run({ ...small, heads: 3 }, { ...small, heads: 3 })).rejects.toThrow('3 heads do not share 2 KV heads')
  const c = caseOf(small, rows, { gate: true })
  const narrowGate = { ...c, operands: { ...c.operands, gate: { shape: ['T', 508] } } } as const
  await expect(runOn(cpuDevice('test'), narrowGate)).rejects.toThrow(
    'gate (gate) has shape [T,508], expected [T, n] with n a multiple of 4 from 512 on',
  )
  await expect(run({ ...small, headDim: 6 }, { ...small, headDim: 6 })).rejects.toThrow('a head has 6 values')
  const narrow = { ...small, headDim: 32, variant: 'tiled' } as const
  await expect(run({ ...narrow, heads: 512 }, { ...narrow, heads: 512 })).rejects.toThrow('no tiles for 512/2 heads')
})
