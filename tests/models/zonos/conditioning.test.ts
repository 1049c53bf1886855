import { beforeAll, describe, expect, test } from 'vitest'
import { cpuDevice } from '../../../src/device/cpu.ts'
import type { Device } from '../../../src/device/device.ts'
import { decode } from '../../../src/device/formats.ts'
import { InputError } from '../../../src/errors.ts'
import type { View } from '../../../src/graph/kernel.ts'
import type { Tensor } from '../../../src/graph/tensor.ts'
import { layerNorm } from '../../../src/kernels/layer_norm.ts'
import { linear } from '../../../src/kernels/linear.ts'
import { guidedPrefixes, prefixRows } from '../../../src/models/zonos/conditioning.ts'
import { type Conditions, type ConditionValues, conditionValues } from '../../../src/models/zonos/conditions.ts'
import type { Prefix } from '../../../src/models/zonos/prefix.ts'
import { randomVoice } from '../../../src/models/zonos/voice.ts'
import type { ConditionerWeights } from '../../../src/models/zonos/weights.ts'
import { phonemeIds } from '../../../src/text/symbols.ts'
import { expectWithin, gpu, runOn } from '../../check.ts'
import { fixtureJson, fixtureModel, fixtureTensors } from '../../fixtures.ts'
import { loadZonos } from './fixture.ts'

/** The prefix conditioner of a checkpoint, on the host. */
interface Conditioner {
  readonly hidden: number
  readonly weights: readonly ConditionerWeights[]
  readonly project: View // [d, d]
  readonly bias: View // [d]
  readonly norm: View // [2, d]
}

type Case = ConditionValues & { readonly ipa: string; readonly phoneme_ids: number[]; readonly language: string }
const casesOf = (path: string) => fixtureJson<{ cond: Record<string, Case> }>(path).cond

async function checkpoint(folder: string): Promise<Conditioner> {
  const device = cpuDevice('test')
  const { c, w } = await loadZonos(folder, device)
  const values = async (t: Tensor) => decode(await device.read(t), t.format)
  const { project, bias, norm } = w.prefix
  const read = { project: await values(project), bias: await values(bias), norm: await values(norm) }
  return { hidden: c.hidden, weights: w.conditioners, ...read }
}

/** Only the conditioner of the hybrid is here: it has all eleven. */
function hybrid(): Conditioner {
  const { names, get } = fixtureTensors('zonos-hybrid-tiny/prefix.safetensors')
  const { configs } = fixtureJson<{ configs: ConditionerWeights['config'][] }>('zonos-hybrid-tiny/prefix.json')
  const find = (i: number, name: RegExp) => {
    const found = names.filter((n) => n.startsWith(`prefix_conditioner.conditioners.${i}.`)).find((n) => name.test(n))
    return found === undefined ? undefined : get(found)
  }
  const weights = configs.map((config, i): ConditionerWeights => {
    const [weight, bias, unconditional] = [/weight$/, /bias$/, /uncond_vector$/].map((name) => find(i, name))
    return { config, weight: weight!, ...(bias && { bias }), ...(unconditional && { unconditional }) }
  })
  const at = (name: string) => get(`prefix_conditioner.${name}`).data
  const norm = Float32Array.of(...at('norm.weight'), ...at('norm.bias'))
  return { hidden: 128, weights, project: at('project.weight'), bias: at('project.bias'), norm }
}

/** What the graph of the model does with the rows: LayerNorm(W rows + b). */
async function finished(device: Device, { hidden, project, bias, norm }: Conditioner, { rows }: Prefix) {
  const { prefix } = await runOn(device, {
    operands: {
      rows: { shape: ['T', hidden], data: rows },
      project: { shape: [hidden, hidden], data: project },
      bias: { shape: [hidden], data: bias },
      norm: { shape: [2, hidden], data: norm },
    },
    counts: { T: rows.length / hidden },
    op: (t) => ({ prefix: layerNorm(linear(t.rows!, t.project!, { bias: t.bias! }), t.norm!, { eps: 1e-5 }) }),
  })
  return prefix!
}

const half = (data: Float32Array, row: 0 | 1): Float32Array =>
  data.subarray((row * data.length) / 2, ((row + 1) * data.length) / 2)

describe.each([
  ['zonos-transformer-tiny', 7, 'expected.safetensors', 'inputs.json'],
  ['zonos-hybrid-tiny', 11, 'prefix.safetensors', 'prefix.json'],
] as const)('%s against upstream', (name, conditioners, goldens, inputs) => {
  const cond = casesOf(`${name}/${inputs}`)
  const want = fixtureTensors(`${name}/${goldens}`)
  let model: Conditioner
  beforeAll(async () => {
    model = name === 'zonos-hybrid-tiny' ? hybrid() : await checkpoint(fixtureModel(name))
    expect(model.weights).toHaveLength(conditioners)
  })
  const expectGolden = async (device: Device, key: string, prefix: Prefix, row: 0 | 1) =>
    expectWithin(await finished(device, model, prefix), half(want.get(`prefix.${key}`).data, row), 2e-4, 1e-3, key)

  test.each(['defaults', 'other', 'none'])('prefix %s, from numbers', async (key) => {
    const { phoneme_ids, ipa, language: _, ...values } = cond[key]!
    expect([...phonemeIds(ipa)]).toEqual(phoneme_ids)
    for (const device of [cpuDevice('test'), await gpu()]) {
      await expectGolden(device, key, prefixRows(model.weights, model.hidden, phoneme_ids, values), 0)
      await expectGolden(device, key, prefixRows(model.weights, model.hidden, phoneme_ids, {}), 1)
    }
  })

  test.each<[string, (c: Case) => Conditions]>([
    ['defaults', ({ speaker }) => ({ speaker })],
    ['none', () => ({ unconditional: ['emotion', 'pitchStd'] })],
    [
      'other',
      ({ speaker }) => ({
        language: 'ja',
        speaker,
        emotion: {
          happiness: 1,
          sadness: 0.05,
          disgust: 0.05,
          fear: 0.05,
          surprise: 0.05,
          anger: 0.05,
          other: 0.1,
          neutral: 0.2,
        },
        fmax: 24000,
        pitchStd: 45,
        speakingRate: 25.5,
        vqScore: [0.6, 0.62, 0.64, 0.66, 0.7, 0.72, 0.74, 0.79],
        ctcLoss: 3.5,
        dnsmos: 3.25,
        speakerNoised: true,
      }),
    ],
  ])('prefix %s, from conditions', async (key, conditions) => {
    const c = cond[key]!
    const { conditional, unconditional } = guidedPrefixes(model.weights, model.hidden, c.phoneme_ids, conditions(c))
    await expectGolden(cpuDevice('test'), key, conditional, 0)
    await expectGolden(cpuDevice('test'), key, unconditional, 1)
  })

  test('a second set of conditions instead of the unconditional one', () => {
    const { weights, hidden } = model
    const [say, not] = [{ emotion: { happiness: 1 } }, { emotion: { sadness: 1 } }]
    const { conditional, unconditional } = guidedPrefixes(weights, hidden, [2, 61, 3], say, not)
    expect(unconditional).toEqual(prefixRows(weights, hidden, [2, 61, 3], conditionValues(not)))
    expect(unconditional.rows.length).toBe(conditional.rows.length)
    const differ = new Set<number>()
    for (const [i, v] of conditional.rows.entries()) if (v !== unconditional.rows[i]) differ.add(Math.floor(i / hidden))
    expect([...differ]).toEqual([4]) // three phonemes, the speaker, the emotion
  })

  test('what does not fit is an error', () => {
    const rows = (values: ConditionValues, ids = [2, 3]) => prefixRows(model.weights, model.hidden, ids, values)
    expect(() => rows({ speaking_rate: [41] })).toThrow(
      new InputError('conditioning: speaking_rate is 41, expected 0 to 40'),
    )
    expect(() => rows({ fmax: [-1] })).toThrow(InputError)
    expect(() => rows({ pitch_std: [Number.NaN] })).toThrow(InputError)
    expect(() => rows({ language_id: [127] })).toThrow(/language_id is 127, expected -1 to 126/)
    expect(() => rows({ language_id: [1.5] })).toThrow(InputError)
    expect(() => rows({ speaker: [1, 2] })).toThrow(/speaker has 2 numbers, expected 128/)
    expect(() => rows({ emotion: [1] })).toThrow(InputError)
    expect(() => rows({}, [2, 189, 3])).toThrow(/phonemes has 189, expected an integer below 189/)
    expect(rows({ speaking_rate: [40], fmax: [0] }).rows.length).toBe((conditioners + 1) * model.hidden)
    const needed = model.weights.map(({ unconditional: _, ...w }) => ({
      ...w,
      config: { ...w.config, unconditional: false },
    }))
    expect(() => prefixRows(needed, model.hidden, [2, 3], {})).toThrow(/speaker is left out, expected a value/)
  })
})

describe('zonos-nano against upstream', () => {
  const want = fixtureTensors('zonos-nano/golden.safetensors')
  let model: Conditioner
  beforeAll(async () => {
    model = await checkpoint('public/models/zonos-nano')
  })
  test.each(['həlˈoʊ, wˈɜːld!', 'jˈɛs.', 'plˈiːz wˈeɪt ˈeɪ mˈoʊmənt.'].map((ipa, i) => [ipa, i]))(
    '%s',
    async (ipa, i) => {
      const speaker = i === 2 ? want.get('t2.speaker').data : null
      const ids = phonemeIds(`${ipa}`)
      expect([...ids]).toEqual([...want.get(`t${i}.ids`).data])
      const { conditional, unconditional } = guidedPrefixes(model.weights, model.hidden, ids, { speaker })
      for (const device of [cpuDevice('test'), await gpu()]) {
        expectWithin(await finished(device, model, conditional), want.get(`t${i}.prefix_cond`).data, 2e-4, 1e-3)
        expectWithin(await finished(device, model, unconditional), want.get(`t${i}.prefix_uncond`).data, 2e-4, 1e-3)
      }
    },
  )
})

describe('conditions', () => {
  test('have upstream’s defaults', () => {
    const { emotion, ...others } = conditionValues()
    expect(others).toEqual({
      ...{ language_id: [24], speaker: null, fmax: [22050], pitch_std: [20], speaking_rate: [15] },
      ...{ vqscore_8: null, ctc_loss: [0], dnsmos_ovrl: null, speaker_noised: [0] },
    })
    expect(Array.from(emotion!).reduce((a, b) => a + b)).toBeCloseTo(1, 12)
    expect(emotion![0]).toBeCloseTo(0.30776, 5)
    expect(conditionValues({ fmax: undefined, speaker: undefined })).toEqual(conditionValues())
  })
  test('null is unconditional, and so are the keys that say so', () => {
    expect(conditionValues({ language: null, fmax: null })).toMatchObject({ language_id: null, fmax: null })
    expect(conditionValues({ fmax: 24000, unconditional: ['fmax', 'emotion'] })).toMatchObject({
      fmax: null,
      emotion: null,
    })
  })
  test('emotions are shares, and what was given is left alone', () => {
    const given = Float32Array.of(2, 0, 0, 0, 0, 0, 0, 2)
    expect(conditionValues({ emotion: given }).emotion).toEqual([0.5, 0, 0, 0, 0, 0, 0, 0.5])
    expect(given[0]).toBe(2)
    expect(conditionValues({ emotion: { anger: 3 } }).emotion).toEqual([0, 0, 0, 0, 0, 1, 0, 0])
  })
  test.each<[Conditions | object]>([
    [{ emotion: [0, 0, 0, 0, 0, 0, 0, 0] }],
    [{ emotion: [1, -1, 1, 0, 0, 0, 0, 0] }],
    [{ emotion: { joy: 1 } }],
    [{ emotion: 'happy' }],
    [{ toString: 1 }],
    [{ language: 'klingon' }],
    [{ language: 24 }],
    [{ speakingRate: Number.NaN }],
    [{ speakingRate: 'fast' }],
    [{ speaker: [] }],
    [{ speakerNoised: 1 }],
    [{ pitch: 3 }],
    [{ unconditional: ['pitch'] }],
  ])('%o is an error', (conditions) => {
    expect(() => conditionValues(conditions)).toThrow(InputError)
  })
})

describe('random voices', () => {
  test('the same seed is the same voice, for ever', () => {
    expect([...randomVoice(0, 3), ...randomVoice(4294967295, 1)]).toEqual([
      -0.004123260732740164, -1.0652621984481812, 1.184246301651001, 0.5030702948570251,
    ])
    expect(randomVoice(7)).toEqual(randomVoice(7))
    expect(randomVoice(7)).not.toEqual(randomVoice(8))
    expect(randomVoice(7, 128).subarray(0, 5)).toEqual(randomVoice(7, 5))
  })
  test('are normally distributed, and not alike', () => {
    const voices = Array.from({ length: 500 }, (_, seed) => randomVoice(seed))
    const values = voices.flatMap((v) => [...v])
    const moment = (k: number) => values.reduce((sum, v) => sum + v ** k, 0) / values.length
    expect(Math.abs(moment(1))).toBeLessThan(0.01)
    expect(Math.abs(moment(2) - 1)).toBeLessThan(0.01)
    expect(Math.abs(moment(3))).toBeLessThan(0.03)
    expect(Math.abs(moment(4) - 2.9)).toBeLessThan(0.06) // a normal distribution has 3
    const alike = voices.slice(1).map((v, i) => v.reduce((sum, x, k) => sum + x * voices[i]![k]!, 0) / 128)
    expect(Math.max(...alike.map(Math.abs))).toBeLessThan(0.4)
  })
  test.each([-1, 1.5, 2 ** 32, Number.NaN])('seed %s is an error', (seed) => {
    expect(() => randomVoice(seed)).toThrow(InputError)
  })
})
