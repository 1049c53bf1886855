import { describe, expect, test } from 'vitest'
import { cpuDevice } from '../../src/device/cpu.ts'
import { ShapeError } from '../../src/errors.ts'
import { Graph } from '../../src/graph/graph.ts'
import { defaultLimits, type Target } from '../../src/graph/target.ts'
import { deltaForm, deltaFormat, deltaRule } from '../../src/kernels/delta_rule.ts'
import { gpu, relativeNorm, runOn, sameOnEveryDevice } from '../check.ts'
import { deltaCase, golden, goldens, lengths, part, randomDelta, statesAfter } from './delta_cases.ts'
import { nvidia } from './delta_matrix_cases.ts'

const forms = ['recurrent', 'chunked'] as const
const dims = { keyHeads: 2, valueHeads: 4, keyWidth: 32, valueWidth: 32 }
const cpu = cpuDevice('test')

test('the goldens cover every length and regime', () => {
  expect(goldens).toHaveLength(28)
  for (const T of lengths)
    for (const regime of ['slow', 'fast', 'extreme']) expect(goldens).toContain(`gdn.d32.T${T}.${regime}`)
})

describe.each(forms)('%s', (form) => {
  test.each(goldens)('%s', async (name) => {
    const data = golden(name)
    for (const device of [cpu, await gpu()]) {
      const results = await runOn(device, deltaCase(data, form))
      expect(relativeNorm(results.o!, data.out), `${device.kind} out`).toBeLessThan(1e-5)
      expect(relativeNorm(statesAfter(results, data), data.state), `${device.kind} state`).toBeLessThan(1e-5)
    }
  })

  test.each([false, true])('equals its twin on ragged segments, grouped heads, states: %s', (withState) =>
    sameOnEveryDevice(deltaCase(randomDelta(dims, [70, 3, 64, 129, 1], 5, withState), form)),
  )

  test('a wide value head and a narrow key head', () =>
    sameOnEveryDevice(
      deltaCase(randomDelta({ keyHeads: 1, valueHeads: 3, keyWidth: 8, valueWidth: 48 }, [67, 2], 6, true), form),
    ))

  test('a segment has the same bits among others as alone', async () => {
    const device = await gpu()
    const data = randomDelta(dims, [70, 3, 64, 129, 1], 7, true)
    const together = await runOn(device, deltaCase(data, form))
    const states = statesAfter(together, data)
    let at = 0
    for (let i = 0; i < data.lengths.length; i++) {
      const one = part(data, i, i + 1)
      const alone = await runOn(device, deltaCase(one, form))
      const state = statesAfter(alone, one)
      expect(alone.o!.length).toBeGreaterThan(0)
      expect(together.o!.slice(at, at + alone.o!.length)).toEqual(alone.o)
      expect(states.slice(i * state.length, (i + 1) * state.length)).toEqual(state)
      at += alone.o!.length
    }
    expect(at).toBe(together.o!.length)
  })

  test('segments may share a state, start from zeros and drop theirs', async () => {
    const data = randomDelta(dims, [66, 66, 5, 66], 9, true)
    const state = 4 * 32 * 32
    const slots = { from: [2, 2, 0, 0], to: [0, 7, 0, 5] }
    const before = deltaCase(data, form).operands.state!.data as Float32Array
    for (const device of [cpu, await gpu()]) {
      const got = await runOn(device, deltaCase(data, form, slots))
      for (let slot = 0; slot < 9; slot++) {
        const [a, b] = [got.state!, before].map((s) => s.slice(slot * state, (slot + 1) * state))
        if (slots.to.includes(slot) && slot > 0) expect(a).not.toEqual(b)
        else expect(a, `slot ${slot}`).toEqual(b)
      }
      const alone = await runOn(device, deltaCase({ ...part(data, 3, 4), state0: undefined }, form))
      expect(got.o!.slice(-66 * 128)).toEqual(alone.o)
    }
    await sameOnEveryDevice(deltaCase(data, form, slots))
  })

  test('130 tokens as 64 + 66 through a state have the bits of one run', async () => {
    const device = await gpu()
    const whole = randomDelta(dims, [130], 8)
    const cut = { ...whole, lengths: [64, 66] }
    const [first, second] = [part(cut, 0, 1), part(cut, 1, 2)]
    const results = await runOn(device, deltaCase(whole, form))
    const a = await runOn(device, deltaCase(first, form))
    const b = await runOn(device, deltaCase({ ...second, state0: statesAfter(a, first) }, form))
    expect(Float32Array.of(...a.o!, ...b.o!)).toEqual(results.o)
    expect(statesAfter(b, second)).toEqual(statesAfter(results, whole))
  })
})

test('forms agree at every length', async () => {
  for (let T = 1; T <= 130; T++) {
    const data = randomDelta({ keyHeads: 1, valueHeads: 1, keyWidth: 8, valueWidth: 16 }, [T], T, true)
    const [recurrent, chunked] = [
      await runOn(cpu, deltaCase(data, 'recurrent')),
      await runOn(cpu, deltaCase(data, 'chunked')),
    ]
    expect(relativeNorm(chunked.o!, recurrent.o!), `${T} tokens`).toBeLessThan(1e-6)
    expect(relativeNorm(chunked.state!, recurrent.state!), `${T} tokens, state`).toBeLessThan(1e-6)
  }
})

const record = (target: Partial<Target>, form?: 'recurrent' | 'chunked', wrong: object = {}) => {
  const graph = new Graph({ ...cpu.target, limits: defaultLimits, ...target })
  const tensors = {
    qkv: graph.input('qkv', ['T', 256], deltaFormat(form ?? deltaForm(graph.target, dims))),
    gates: graph.input('gates', ['T', 8]),
    state: graph.input('state', ['*', 4, 32, 32]),
    segments: graph.input('segments', ['S', 8], 'u32'),
    chunks: graph.input('chunks', ['C', 2], 'u32'),
  }
  const { qkv, gates, state, segments, chunks } = { ...tensors, ...wrong }
  deltaRule(qkv, gates, state, { segments, chunks }, dims, form ? { form } : {})
  return graph.steps.map((s) => s.kernel.name)
}

test('the target decides the form', () => {
  expect(record({ software: true })).toEqual(['delta_rule'])
  expect(record({ software: false })).toEqual(['delta_chunk', 'delta_chunk', 'delta_scan']) // by number of chunks
  expect(record({ software: false, disabled: new Map([['delta_scan', 'tested']]) })).toEqual(['delta_rule'])
  expect(record({ software: true }, 'chunked')).toEqual(['delta_chunk', 'delta_scan'])
})

test('matrix units are used where they fit and work, for operands of f16', () => {
  const matrix = ['delta_chunk_matrix', 'delta_scan_matrix']
  const chunked = ['delta_chunk', 'delta_chunk', 'delta_scan']
  expect(record(nvidia)).toEqual(matrix)
  for (const kernel of matrix) expect(record({ ...nvidia, disabled: new Map([[kernel, 'tested']]) })).toEqual(chunked)
  const { limits, features } = nvidia
  const less: Partial<Target>[] = [
    { operand: 'f32' },
    { matrix: { M: 8, N: 8, K: 8 } },
    { subgroupSize: 16 },
    { features: new Set([...features].filter((f) => f !== 'shader-f16')) },
    { limits: { ...limits, invocations: 128 } },
    { limits: { ...limits, workgroupBytes: 16 * 1024 } },
  ]
  for (const target of less) expect(record({ ...nvidia, ...target })).toEqual(chunked)
  expect(record({ ...nvidia, software: true })).toEqual(['delta_rule'])
  const d128 = { keyHeads: 16, valueHeads: 16, keyWidth: 128, valueWidth: 128 }
  expect(deltaForm(nvidia, d128)).toBe('matrix')
  expect(deltaForm(nvidia, { ...d128, valueWidth: 144 })).toBe('chunked')
  expect(deltaForm(nvidia, { ...d128, keyWidth: 136 })).toBe('recurrent')
  expect(deltaForm({ ...nvidia, limits: { ...limits, workgroupBytes: 32 * 1024 } }, d128)).toBe('chunked')
})

test('wrong shapes are named', () => {
  const g = new Graph(cpu.target)
  const wrong = { state: g.input('state', ['*', 4, 32, 16]) }
  expect(() => record({}, 'recurrent', wrong)).toThrow(ShapeError)
  expect(() => record({}, 'recurrent', wrong)).toThrow('state (state) has shape [*,4,32,16], expected [*,4,32,32]')
  expect(() => record({}, 'recurrent', { qkv: g.input('qkv', ['T', 64]) })).toThrow(ShapeError)
  expect(() => record({}, 'recurrent', { qkv: g.input('half', ['T', 256], 'f16') })).toThrow('has format f16')
})
