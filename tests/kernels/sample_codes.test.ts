import { describe, expect, test } from 'vitest'
import { cpuDevice } from '../../src/device/cpu.ts'
import { Graph } from '../../src/graph/graph.ts'
import type { Summing } from '../../src/kernels/lib/slices.ts'
import {
  type Frame,
  frameInput,
  frameShape,
  type Sampling,
  sampleCodes,
  samplingInput,
  samplingShape,
} from '../../src/kernels/sample_codes.ts'
import { type Case, expectClose, expectWithin, gpu, noise, runOn } from '../check.ts'
import { fixtureJson, fixtureTensors } from '../fixtures.ts'
import { frameOf, plainSampling } from './codes_cases.ts'

const [BOOKS, CODES, EOS] = [9, 1025, 1024]
const name = 'zonos-transformer-tiny'
const goldens = fixtureTensors(`${name}/expected.safetensors`)
const { sampler_history: history, sampler_cases: cases } = fixtureJson<{
  sampler_history: number[][] // [9, columns]
  sampler_cases: Record<string, Record<string, number>>
}>(`${name}/inputs.json`)
const columns = history[0]!.length
const past = Uint32Array.from({ length: columns * BOOKS }, (_, i) => history[i % BOOKS]![Math.floor(i / BOOKS)]!)

function sampleCase(
  logits: Float32Array,
  sampling: Partial<Sampling>,
  frame: Partial<Frame> = {},
  summing: Summing = 'alone',
): Case {
  const books = { shape: ['*', BOOKS], format: 'u32', data: past, kept: true } as const
  const s = samplingInput({ ...plainSampling, ...sampling })
  return {
    operands: {
      logits: { shape: ['R', BOOKS * CODES], data: logits },
      grid: books,
      frame: { shape: frameShape, format: 'u32', data: frameInput(frameOf({ column: columns, ...frame })) },
      sampling: { shape: samplingShape, data: s },
    },
    counts: { R: logits.length / BOOKS / CODES },
    op: ({ logits, grid, frame, sampling }) => ({
      ...sampleCodes(logits!, grid!, { frame: frame!, sampling: sampling! }, { summing }),
    }),
    kernels: [summing === 'shared' ? 'sample_codes_shared' : 'sample_codes'],
  }
}

const filtered = (scores: Float32Array): Float32Array => scores.subarray(BOOKS * CODES)
/** Columns 0 to 1024 of the reference's 1026. */
const narrow = (wide: Float32Array): Float32Array => wide.filter((_, i) => i % (CODES + 1) < CODES)
const codes = (drawn: Float32Array): number[] => [...new Uint32Array(Float32Array.from(drawn).buffer)]

const renamed = { min_p: 'minP', top_p: 'topP', top_k: 'topK', conf: 'confidence', quad: 'quadratic' } as Record<
  string,
  string
>
const settings = (given: Record<string, number>): Partial<Sampling> => {
  const own = Object.entries(given).filter(([key]) => key !== 'nonzero_per_codebook')
  const named = own.map(([key, v]) => [key === 'repetition_penalty' ? 'penalty' : (renamed[key] ?? key), v])
  return Object.fromEntries(named) as Partial<Sampling>
}

describe.each(Object.keys(cases))('golden %s', (key) => {
  const want = narrow(goldens.get(`sampler.${key}.probs`).data)
  test.each(['cpu', 'alone', 'shared'] as const)('%s', async (form) => {
    const device = form === 'cpu' ? cpuDevice('test') : await gpu()
    const summing = form === 'shared' ? 'shared' : 'alone'
    const c = sampleCase(goldens.get('sampler.logits').data, settings(cases[key]!), {}, summing)
    const { scores } = await runOn(device, c)
    const got = filtered(scores!)
    expectWithin(got, want, 1e-6, 1e-4, key)
    // A unified sampler's least probabilities may or may not vanish: exp() below 1e-38.
    const zeros = [...want.keys()].filter((i) => want[i] === 0 && !key.startsWith('unified_quad'))
    expect(zeros.filter((i) => got[i] !== 0)).toEqual([])
  })
})

test('golden logits behind the penalty; temperature 0 draws the greatest', async () => {
  const c = sampleCase(goldens.get('sampler.logits').data, { temperature: 0, penalty: 3, window: 2 })
  for (const device of [cpuDevice('test'), await gpu()]) {
    const { scores, drawn } = await runOn(device, c)
    const want = goldens.get('sampler.rep3.logits').data
    expectWithin(filtered(scores!), want, 1e-6, 0, device.kind)
    const best = Array.from({ length: BOOKS }, (_, k) => {
      const row = want.subarray(k * CODES, (k + 1) * CODES)
      return row.indexOf(row.reduce((a, b) => Math.max(a, b)))
    })
    expect(device.kind === 'cpu' ? [...drawn!] : codes(drawn!)).toEqual(best)
  }
})

/** Twin and shader draw the same but where two scores are as good as equal. */
async function sameDraws(c: Case): Promise<number[]> {
  const want = await runOn(cpuDevice('test'), c)
  const got = await runOn(await gpu(), c)
  expectClose(filtered(got.scores!), filtered(want.scores!), 1e-5, 'scores')
  expect(codes(got.drawn!)).toEqual([...want.drawn!])
  return [...want.drawn!]
}

describe.each(['alone', 'shared'] as const)('twin and shader draw the same, %s', (summing) => {
  const logits = noise(2 * BOOKS * CODES, 5).map((v) => 6 * v)
  test.each<[string, Partial<Sampling>]>([
    ['no filter', {}],
    ['guidance and a penalty', { guidance: 2, penalty: 3, window: 2 }],
    ['a wide window and min-p', { guidance: 1.5, penalty: 1.2, window: 50, minP: 0.1 }],
    ['unified', { linear: 0.5, confidence: 0.4 }],
    ['top-p, top-k, min-p', { topP: 0.9, topK: 40, minP: 0.02, temperature: 0.8 }],
  ])('%s', async (_, sampling) => {
    const drawn = await sameDraws(sampleCase(logits, sampling, { seed: 11 }, summing))
    expect(drawn.every((code) => code < CODES)).toBe(true)
    const again = await sameDraws(sampleCase(logits, sampling, { seed: 12 }, summing))
    expect(again, 'another seed').not.toEqual(drawn)
  })
})

test('EOS is only said where it may be', async () => {
  const logits = noise(BOOKS * CODES, 2)
  for (let k = 0; k < BOOKS; k++) logits[k * CODES + EOS] = 20
  const draw = (frame: Partial<Frame>, sampling: Partial<Sampling> = {}) =>
    sameDraws(sampleCase(logits, sampling, frame))
  const eos = (drawn: number[]) => drawn.map((code) => code === EOS)
  expect(eos(await draw({}))).toEqual(new Array(9).fill(true))
  expect(eos(await draw({ othersEnd: false }))).toEqual([true, ...new Array(8).fill(false)])
  expect(eos(await draw({ endFrom: columns + 1, othersEnd: false }, { temperature: 0 }))).toEqual(
    new Array(9).fill(false),
  )
  expect(eos(await draw({ endFrom: columns + 1, othersEnd: false }, { linear: 0.5, quadratic: -1 }))).toEqual(
    new Array(9).fill(false),
  )
})

test('draws follow the probabilities', async () => {
  const logits = new Float32Array(BOOKS * CODES).fill(-50)
  for (let k = 0; k < BOOKS; k++) {
    logits[k * CODES + 3] = Math.log(0.7)
    logits[k * CODES + 500] = Math.log(0.3)
  }
  let threes = 0
  let draws = 0
  for (let seed = 0; seed < 200; seed++) {
    const { drawn } = await runOn(cpuDevice('test'), sampleCase(logits, {}, { seed, column: seed % 7 }))
    expect([...drawn!].every((code) => code === 3 || code === 500)).toBe(true)
    threes += [...drawn!].filter((code) => code === 3).length
    draws += BOOKS
  }
  expect(Math.abs(threes / draws - 0.7)).toBeLessThan(0.035) // three standard deviations of 1800 draws
})

test('says what does not fit', () => {
  const graph = new Graph(cpuDevice('test').target)
  const grid = graph.input('grid', ['*', BOOKS], 'u32')
  const frame = graph.input('frame', frameShape, 'u32')
  const sampling = graph.input('sampling', samplingShape)
  const call = (logits: ReturnType<Graph['input']>) => sampleCodes(logits, grid, { frame, sampling })
  expect(() => call(graph.input('odd', ['R', 100]))).toThrow('logits (odd) has shape [R,100], expected [R,99]')
  expect(() => call(graph.input('half', ['R', 99], 'f16'))).toThrow('format f16, expected f32')
})
