import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { cpuDevice } from '../../../src/device/cpu.ts'
import type { Device } from '../../../src/device/device.ts'
import { openDevice } from '../../../src/device/open.ts'
import { CODEBOOKS, EOS } from '../../../src/models/zonos/config.ts'
import type { Codes } from '../../../src/models/zonos/delay.ts'
import type { Speech } from '../../../src/models/zonos/request.ts'
import { type ZonosSession, zonosSession } from '../../../src/models/zonos/session.ts'
import { fixtureJson, fixtureModel, fixtureTensors } from '../../fixtures.ts'
import { type Conditions, codesOf, type Loaded, listed, loadZonos, prefixOf } from './fixture.ts'

interface Greedy {
  readonly phoneme_ids: number[]
  readonly speaker: number[]
  readonly max_new_tokens: number
  readonly audio_prefix_codes?: number[][]
}
const tiny = 'zonos-transformer-tiny'
const given = fixtureJson<{ cond: { defaults: Conditions }; greedy: Greedy; greedy_prefix: Greedy }>(
  `${tiny}/inputs.json`,
)
const goldens = fixtureTensors(`${tiny}/expected.safetensors`)
/** Of the model's own golden.safetensors all but the codec's tensors and most logits. */
const nanoGoldens = fixtureTensors('zonos-nano/golden.safetensors')

const both = (model: Loaded, conditions: Conditions): Pick<Speech, 'conditional' | 'unconditional'> => ({
  conditional: prefixOf(model, conditions),
  unconditional: prefixOf(model, { espeak: conditions.espeak }),
})
const greedy = { temperature: 0, repetitionPenalty: 3, repetitionWindow: 2 } as const

const tinyPrefixes = (model: Loaded) =>
  both(model, { ...given.cond.defaults, espeak: given.greedy.phoneme_ids, speaker: given.greedy.speaker })

describe.each(['cpu', 'webgpu'] as const)('on %s', (kind) => {
  let device: Device
  let model: Loaded
  let session: ZonosSession
  beforeAll(async () => {
    device = kind === 'cpu' ? cpuDevice('test') : await openDevice('webgpu', { precision: 'f32' })
    model = await loadZonos(fixtureModel(tiny), device)
    session = zonosSession(device, model.c, model.w)
  })
  afterAll(() => device.dispose())
  const upstream = { ...greedy, minFrames: 0, writing: 'upstream' } as const

  test('greedy codes equal the reference', async () => {
    const maxFrames = given.greedy.max_new_tokens
    const { codes } = await session.generate({ ...tinyPrefixes(model), maxFrames, sampling: upstream })
    expect(codes).toEqual(codesOf(goldens.get('greedy.codes')))
  })

  test('greedy codes behind an audio prefix equal the reference', async () => {
    const { audio_prefix_codes, max_new_tokens } = given.greedy_prefix
    const audioPrefix = listed(audio_prefix_codes!)
    const told: Codes[] = []
    const { codes, ended } = await session.generate(
      { ...tinyPrefixes(model), maxFrames: max_new_tokens, audioPrefix, sampling: upstream },
      { onFrames: (frames) => told.push(frames) },
    )
    expect(codes).toEqual(codesOf(goldens.get('greedy_prefix.codes')))
    expect(ended).toBe('length')
    expect(told.flatMap(({ data }) => [...data])).toEqual([...codes.data])
    expect(told.length).toBeGreaterThan(1)
  })

  test('columns that are read late give the same codes, wherever the end is', async () => {
    const late = zonosSession(device, model.c, model.w, { pace: { every: 8, ahead: 1 } })
    for (const [maxFrames, seed] of [
      [1, 1],
      [8, 2],
      [19, 3],
      [40, 4],
    ] as const) {
      const speech = { ...tinyPrefixes(model), maxFrames, sampling: { seed, temperature: 3 } }
      const told: Codes[] = []
      const spoken = await late.generate(speech, { onFrames: (frames) => told.push(frames) })
      expect(spoken).toEqual(await session.generate(speech))
      expect(told.flatMap(({ data }) => [...data])).toEqual([...spoken.codes.data])
    }
    const { max_new_tokens: maxFrames } = given.greedy
    const { codes } = await late.generate({ ...tinyPrefixes(model), maxFrames, sampling: upstream })
    expect(codes).toEqual(codesOf(goldens.get('greedy.codes')))
  })

  test('a seed gives the same codes again, another one others', async () => {
    const say = async (seed: number, cfgScale = 2) => {
      const speech = { ...tinyPrefixes(model), maxFrames: 20, cfgScale, sampling: { seed } }
      return (await session.generate(speech)).codes
    }
    const first = await say(7)
    expect(await say(7)).toEqual(first)
    expect(await say(8)).not.toEqual(first)
    const alone = await say(7, 1)
    expect(alone.frames, 'one row where the scale is 1').toBe(20)
    expect(alone).not.toEqual(first)
  })
})

describe('zonos-nano', () => {
  const conditions = JSON.parse(nanoGoldens.metadata.cond!) as Conditions
  const prefixes = (model: Loaded, text: string) => {
    const speaker = text === 't2' ? [...nanoGoldens.get('t2.speaker').data] : undefined
    return both(model, { ...conditions, speaker, espeak: [...nanoGoldens.get(`${text}.ids`).data] })
  }
  const path = 'public/models/zonos-nano'

  test.each(['t0', 't1', 't2'])('on the CPU, %s: greedy codes with and without a penalty', async (text) => {
    await using device = cpuDevice('test')
    const model = await loadZonos(path, device)
    const session = zonosSession(device, model.c, model.w)
    const late = zonosSession(device, model.c, model.w, { pace: { every: 8, ahead: 1 } })
    for (const [name, repetitionPenalty] of [
      ['greedy', 1],
      ['greedy_rep3', 3],
    ] as const) {
      const sampling = { ...greedy, repetitionPenalty }
      const { codes, ended } = await session.generate({ ...prefixes(model, text), maxFrames: 200, sampling })
      expect(codes, name).toEqual(codesOf(nanoGoldens.get(`${text}.${name}`)))
      expect(ended).toBe('eos')
      if (text !== 't1') continue
      const again = await late.generate({ ...prefixes(model, text), maxFrames: 200, sampling })
      expect(again, 'runs behind the end change nothing').toEqual({ codes, ended })
    }
  })

  test('on WebGPU: greedy codes, and the same drawn ones as on the CPU', async () => {
    await using device = await openDevice('webgpu', { precision: 'f32' })
    await using cpu = cpuDevice('test')
    const model = await loadZonos(path, device)
    const session = zonosSession(device, model.c, model.w)
    const sampling = { ...greedy, repetitionPenalty: 1 }
    const { codes } = await session.generate({ ...prefixes(model, 't1'), maxFrames: 200, sampling })
    expect(codes).toEqual(codesOf(nanoGoldens.get('t1.greedy')))
    const drawn = await session.generate({ ...prefixes(model, 't1'), maxFrames: 12, sampling: { seed: 3 } })
    const reference = await loadZonos(path, cpu)
    const same = await zonosSession(cpu, reference.c, reference.w).generate({
      ...prefixes(reference, 't1'),
      maxFrames: 12,
      sampling: { seed: 3 },
    })
    expect(drawn).toEqual(same)
  })
})

describe('what cannot be said', () => {
  let model: Loaded
  let session: ZonosSession
  beforeAll(async () => {
    const device = cpuDevice('test')
    model = await loadZonos(fixtureModel(tiny), device)
    session = zonosSession(device, model.c, model.w)
  })
  const tokens = given.greedy.phoneme_ids.length + 6 // of the other conditioners
  const room = 16384 - tokens - CODEBOOKS
  const wrong: [string, object, string][] = [
    ['no frames', { maxFrames: 0 }, 'maxFrames is 0, expected a positive integer'],
    ['no unconditional prefix', { unconditional: undefined }, 'there is no unconditional prefix'],
    ['prefixes of two lengths', { unconditional: { rows: new Float32Array(128) } }, 'expected equal multiples of 128'],
    ['too much', { maxFrames: 20000 }, `maxFrames is 20000, at most ${room} behind a prefix of ${tokens} tokens`],
    ['a code that is none', { audioPrefix: { frames: 1, data: new Uint16Array(CODEBOOKS).fill(EOS) } }, 'codes from 0'],
    ['an unknown setting', { sampling: { top_p: 1 } }, 'has top_p, expected temperature, minP'],
    ['a setting out of range', { sampling: { minP: 2 } }, 'minP is 2, expected 0 to 1'],
    ['a seed that is no u32', { sampling: { seed: 0.5 } }, 'seed is 0.5, expected an integer'],
  ]
  test.each(wrong)('%s', async (_, change, message) => {
    const speech = { ...tinyPrefixes(model), maxFrames: 10, ...change } as Speech
    await expect(session.generate(speech)).rejects.toThrow(message)
  })

  test('an abort is heard between two columns', async () => {
    const abort = new AbortController()
    const spoken = session.generate(
      { ...tinyPrefixes(model), maxFrames: 100, sampling: { minFrames: 100 } },
      { signal: abort.signal, onFrames: () => abort.abort(new Error('enough')) },
    )
    await expect(spoken).rejects.toThrow('enough')
    const again = await session.generate({ ...tinyPrefixes(model), maxFrames: 3 })
    expect(again.codes.frames).toBeLessThanOrEqual(3)
  })
})
