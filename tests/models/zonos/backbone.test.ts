import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { cpuDevice } from '../../../src/device/cpu.ts'
import type { Device, Traced } from '../../../src/device/device.ts'
import { decode } from '../../../src/device/formats.ts'
import { openDevice } from '../../../src/device/open.ts'
import { CODEBOOKS, CODES } from '../../../src/models/zonos/config.ts'
import { cosine, expectWithin, relativeNorm } from '../../check.ts'
import { fixtureJson, fixtureModel, fixtureTensors } from '../../fixtures.ts'
import { type Conditions, codesOf, forcedLogits, type Loaded, loadZonos, prefixOf } from './fixture.ts'

interface Inputs {
  readonly cond: Record<string, Conditions & { phoneme_ids: number[] }>
  readonly teacher: { readonly audio_prefix_frames: number; readonly steps: number; readonly cfg_scale: number }
}

const name = 'zonos-transformer-tiny'
const want = fixtureTensors(`${name}/expected.safetensors`)
const golden = (key: string): Float32Array => want.get(key).data
const given = fixtureJson<Inputs>(`${name}/inputs.json`)
const teacher = codesOf(want.get('teacher.grid')) // a grid has the layout of codes
const grid = Uint32Array.from(teacher.data)
const { audio_prefix_frames: P, steps, cfg_scale: scale } = given.teacher

const prefixes = (model: Loaded, which: string) => {
  const { phoneme_ids: espeak, ...all } = given.cond[which]!
  return [prefixOf(model, { ...all, espeak }), prefixOf(model, { espeak })]
}

/** u + (c - u) scale of logits [2, n]. */
const mixed = (logits: Float32Array): Float32Array => {
  const n = logits.length / 2
  return Float32Array.from({ length: n }, (_, i) => logits[n + i]! + (logits[i]! - logits[n + i]!) * scale)
}

describe.each(['cpu', 'webgpu'] as const)('on %s', (kind) => {
  let device: Device
  let model: Loaded
  beforeAll(async () => {
    device = kind === 'cpu' ? cpuDevice('test') : await openDevice('webgpu', { precision: 'f32' })
    model = await loadZonos(fixtureModel(name), device)
  })
  afterAll(() => device.dispose())

  test.each(Object.keys(given.cond))('prefix of %s', async (which) => {
    const { programs, inputs, length } = await forcedLogits(device, model, grid, prefixes(model, which))
    const traced = await programs.prefill.trace(...inputs(0, length))
    const prefix = traced.find((t) => t.name === 'embed')! // before the codes' embeddings join it
    expectWithin(prefix.data, golden(`prefix.${which}`), 2e-4, 1e-3)
  })

  test('teacher forced: layers, caches, logits of the prefill and of every step', async () => {
    const { memory, programs, inputs, length, capacity } = await forcedLogits(
      device,
      model,
      grid,
      prefixes(model, 'defaults'),
    )
    const { hidden: d, kvHeads, headDim: D } = model.c
    const own = length + P + 1
    const traced = await programs.prefill.trace(...inputs(0, own))
    const value = (label: string) => traced.findLast((t: Traced) => t.name === label)!.data as Float32Array
    const frames = golden('teacher.frame_embeddings')
    for (const row of [0, 1]) {
      const embedded = value('embed').subarray((row * own + length) * d, (row + 1) * own * d)
      expectWithin(embedded, frames.subarray(0, (P + 1) * d), 1e-5, 1e-5, 'frame embeddings')
    }
    for (let i = 0; i < model.c.layers; i++)
      expectWithin(value(`layers.${i}`), golden(`teacher.prefill.layer${i}`), 3e-4, 1e-3, `layer ${i}`)
    // Hardware takes the last norm together with the heads.
    const last = traced.findLast((t: Traced) => t.kernel === 'layer_norm')?.data
    if (last) expectWithin(last, golden('teacher.prefill.norm_f'), 3e-4, 1e-3, 'norm_f')
    else expect(device.target.software).toBe(false)

    const { logits } = await programs.prefill.run(...inputs(0, own))
    const n = CODEBOOKS * CODES
    const both = Float32Array.of(...logits!.subarray((own - 1) * n, own * n), ...logits!.subarray((2 * own - 1) * n))
    expectWithin(both, golden('teacher.prefill.logits_cond_uncond'), 1e-3, 1e-3, 'rows')
    expectWithin(mixed(both), golden('teacher.prefill.logits'), 1e-3, 1e-3, 'mixed')

    for (let k = 0; k < steps; k++) {
      const { logits } = await programs.decode.run(...inputs(own + k, 1))
      const expected = golden('teacher.step_logits').subarray(k * n, (k + 1) * n)
      expectWithin(mixed(logits!), expected, 1e-3, 1e-3, `step ${k}`)
    }

    const rows = decode(await device.read(memory.kv[0]!), device.target.cache) // [2 rows of capacity, k | v]
    const cache = golden('teacher.layer0.kv_cache') // [2, own + steps, k | v]
    const width = 2 * kvHeads * D
    const each = (own + steps) * width
    for (const row of [0, 1]) {
      const ours = rows.subarray(row * capacity * width, row * capacity * width + each)
      expectWithin(ours, cache.subarray(row * each, (row + 1) * each), 2e-4, 1e-3, 'cache')
    }
  })
})

test('with f16 operands and caches the logits stay near', async () => {
  await using device = await openDevice('webgpu')
  expect(device.target.operand, 'the driver has shader-f16').toBe('f16')
  const model = await loadZonos(fixtureModel(name), device)
  const { programs, inputs, length } = await forcedLogits(device, model, grid, prefixes(model, 'defaults'))
  const own = length + P + 1
  const n = CODEBOOKS * CODES
  await programs.prefill.run(...inputs(0, own))
  const errors: number[] = []
  for (let k = 0; k < steps; k++) {
    const { logits } = await programs.decode.run(...inputs(own + k, 1))
    const expected = golden('teacher.step_logits').subarray(k * n, (k + 1) * n)
    const got = mixed(logits!)
    expect(cosine(got, expected), `step ${k}`).toBeGreaterThan(0.9999)
    errors.push(relativeNorm(got, expected))
  }
  expect(errors.sort((a, b) => a - b)[errors.length >> 1]).toBeLessThan(3e-3)
})

test.each(['cpu', 'webgpu'] as const)('q8 weights of zonos-nano change its logits little, on %s', async (kind) => {
  await using device = kind === 'cpu' ? cpuDevice('test') : await openDevice('webgpu')
  const model = await loadZonos('public/models/zonos-nano', device, 'q8')
  expect(model.w.layers.map(({ fc1 }) => fc1.format)).toEqual(new Array(6).fill('q8'))
  const nano = fixtureTensors('zonos-nano/golden.safetensors')
  const cond = JSON.parse(nano.metadata.cond!) as Conditions
  const espeak = [...nano.get('t2.ids').data]
  const speaker = [...nano.get('t2.speaker').data]
  const both = [prefixOf(model, { ...cond, speaker, espeak }), prefixOf(model, { espeak })]
  const columns = Uint32Array.from(codesOf(nano.get('t2.grid')).data)
  const { programs, inputs, length } = await forcedLogits(device, model, columns, both)
  const n = CODEBOOKS * CODES
  await programs.prefill.run(...inputs(0, length + 1))
  for (const k of [1, 2]) {
    const { logits } = await programs.decode.run(...inputs(length + k, 1))
    const want = nano.get('t2.logits_cond').data.subarray(k * n, (k + 1) * n)
    expect(cosine(logits!.subarray(0, n), want)).toBeGreaterThan(0.999)
    expect(relativeNorm(logits!.subarray(0, n), want)).toBeLessThan(0.03)
  }
})
