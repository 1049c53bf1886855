import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTts } from '../../../src/apps/tts/tts.ts'
import { loadTts } from '../../../src/apps/tts/load.ts'
import { printSpeechProgress, printSpoken } from '../../../src/apps/tts/print.ts'
import { cpuDevice } from '../../../src/device/cpu.ts'
import type { Device } from '../../../src/device/device.ts'
import type { Phonemizer } from '../../../src/index.ts'
import {
  DeviceError,
  InputError,
  type SayOptions,
  type SpeechProgress,
  type SpeechReport,
  type Tts,
  WeightsError,
} from '../../../src/index.ts'

const models = 'public/models'
const open = (device: Device, options: { signal?: AbortSignal } = {}) =>
  loadTts(`${models}/zonos-nano`, { device, codec: `${models}/dac-nano`, ...options })

/** Quiet behind the last piece: what the codec hears ahead. */
const TAIL = 10
/** IPA, so that nothing but the model speaks, and little of it, so that it is quick. */
const text = '/haɪ/!'
const brief: SayOptions = { maxSeconds: 0.2 }

let device: Device
let tts: Tts
beforeAll(async () => {
  device = cpuDevice('test')
  tts = await open(device)
})
afterAll(async () => {
  await tts.dispose()
  expect(device.memory.keptBytes).toBe(0)
})

test('says a word of the length that its codes have', async () => {
  const progress: SpeechProgress[] = []
  const { samples, sampleRate, codes, phonemes, ended, took, unknown, seconds, pieces, warnings } = await tts.say(
    text,
    {
      ...brief,
      onProgress: (p) => progress.push(p),
    },
  )
  expect(sampleRate).toBe(44100)
  expect(phonemes).toBe('haɪ!')
  expect(ended).toBe('length')
  const made = Math.ceil((0.2 * 44100) / 512)
  expect(codes.frames).toBe(made + TAIL)
  expect(seconds).toBe(samples.length / 44100)
  expect(pieces).toEqual([{ text, phonemes, seconds: (made * 512) / 44100, ended, seed: 0 }])
  expect(warnings).toEqual([])
  expect(samples.length).toBe(512 * codes.frames)
  expect(samples.every((v) => Math.abs(v) <= 1)).toBe(true)
  expect(samples.some((v) => Math.abs(v) > 1e-3)).toBe(true)
  expect(unknown).toEqual([])
  expect(progress.at(-1)!.frames).toBe(made)
  expect(progress.map(({ frames }) => frames)).toEqual([...progress.keys()].map((i) => i + 1))
  expect(took.all).toBeGreaterThanOrEqual(took.language + took.codec - 1e-3)
  expect(took.first).toBeGreaterThan(0)
  expect(took.first).toBeLessThanOrEqual(took.all)
})

test('the same seed says the same, another one something else, and so do voices and conditions', async () => {
  const said = async (options: SayOptions): Promise<number[]> => [
    ...(await tts.say(text, { ...brief, ...options })).codes.data,
  ]
  const first = await said({ sampling: { seed: 7 } })
  expect(await said({ sampling: { seed: 7 } })).toEqual(first)
  expect(await said({ sampling: { seed: 8 } })).not.toEqual(first)
  expect(await said({ sampling: { seed: 7 }, voice: 1 })).not.toEqual(first)
  expect(await said({ sampling: { seed: 7 }, cfgScale: 1 })).not.toEqual(first)
  expect(await said({ sampling: { seed: 7 }, negative: { speakingRate: 40 } })).not.toEqual(first)
})

test('calls made together are answered one after another, each as if alone', async () => {
  const [a, b] = await Promise.all([1, 2].map((seed) => tts.say(text, { ...brief, sampling: { seed } })))
  expect((await tts.say(text, { ...brief, sampling: { seed: 1 } })).samples).toEqual(a!.samples)
  expect((await tts.say(text, { ...brief, sampling: { seed: 2 } })).samples).toEqual(b!.samples)
})

test('continues earlier speech, whose sound is not said again', async () => {
  const { samples } = await tts.say(text, brief)
  const audioPrefix = await tts.encode(samples.subarray(0, 512 * 5))
  expect(audioPrefix.frames).toBe(5)
  const next = await tts.say(text, { maxSeconds: 0.1, audioPrefix })
  expect([...next.codes.data.subarray(0, 45)]).toEqual([...audioPrefix.data])
  expect(next.samples.length).toBe(512 * (next.codes.frames - 5))
  expect(next.pieces[0]!.seconds).toBe((512 * (next.codes.frames - 5 - TAIL)) / 44100)
})

describe('refuses', () => {
  test.each([
    ['an empty text', '  ', {}, /^say: the text has nothing to say/],
    ['marks alone', '?! ...', {}, /nothing to say/],
    ['a symbol alone', '/☃/', {}, /nothing to say/],
    ['no text at all', undefined as never, {}, /the text is undefined, expected a string/],
    ['no time', text, { maxSeconds: 0 }, /^say: maxSeconds is 0/],
    ['a rate out of range', text, { speakingRate: 99 }, /speaking/],
    ['an unknown language', text, { language: 'xx' }, /xx/],
    ['a speaker of another length', text, { speaker: [1, 2, 3] }, /speaker/],
    ['a guidance that is none', text, { cfgScale: Number.NaN }, /^speech: cfgScale is NaN/],
    ['something to be unlike out of range', text, { negative: { fmax: 1e5 } }, /fmax is 100000, expected 0 to 24000/],
    ['a seed that is none', text, { sampling: { seed: -1 } }, /^sampling: seed is -1/],
  ] as const)('%s, and goes on', async (_, words, options, message) => {
    const refused = tts.say(words, { ...brief, ...options } as SayOptions)
    await expect(refused).rejects.toThrow(message)
    await expect(refused).rejects.toBeInstanceOf(InputError)
    expect((await tts.say(text, { maxSeconds: 0.05 })).codes.frames).toBeGreaterThan(0)
  })
})

test('an abort is heard while it speaks, before it begins and while it loads', async () => {
  const abort = new AbortController()
  const onProgress = () => abort.abort('enough')
  await expect(tts.say(text, { maxSeconds: 5, signal: abort.signal, onProgress })).rejects.toBe('enough')
  await expect(tts.say(text, { signal: AbortSignal.abort('known') }).report).rejects.toBe('known') // and nothing else
  await expect(tts.say(text, { signal: AbortSignal.abort('early') })).rejects.toBe('early')
  const empty = cpuDevice('test')
  await expect(open(empty, { signal: AbortSignal.abort('late') })).rejects.toBe('late')
  expect(empty.memory.keptBytes).toBe(0)
})

test('8-bit weights take half the memory, and speak', async () => {
  const own = cpuDevice('test')
  const small = await loadTts(`${models}/zonos-nano`, { device: own, codec: `${models}/dac-nano`, weights: 'q8' })
  expect(own.memory.keptBytes).toBeLessThan(0.7 * device.memory.keptBytes)
  expect((await small.say(text, brief)).samples.some((v) => Math.abs(v) > 1e-3)).toBe(true)
  await small.dispose()
})

test('what is no codec leaves nothing on the device', async () => {
  const empty = cpuDevice('test')
  const wrong = loadTts(`${models}/zonos-nano`, { device: empty, codec: `${models}/decider-nano` })
  await expect(wrong).rejects.toBeInstanceOf(WeightsError)
  expect(empty.memory.keptBytes).toBe(0)
})

test('dispose ends what is being said and frees all', async () => {
  const own = cpuDevice('test')
  const other = await open(own)
  const speaking = other.say(text, { maxSeconds: 5 })
  const gone = expect(speaking).rejects.toMatchObject({ code: 'disposed' })
  await Promise.all([other.dispose(), other.dispose(), gone])
  expect(own.memory.keptBytes).toBe(0)
  await expect(other.say(text)).rejects.toBeInstanceOf(DeviceError)
})

const bareConfig = { hidden: 8, trainedSeconds: 30, conditioners: [] }
const bareCodec = {
  config: { sampleRate: 44100, hop: 512, codebooks: { count: 9 }, decoder: { strides: [8, 8, 4, 2] } },
}

test('without espeak-ng says what to install, and IPA goes on', async () => {
  const missing = () => Promise.reject(new InputError('phonemes: npm i @echogarden/espeak-ng-emscripten'))
  const language = { config: bareConfig, generate: () => expect.unreachable() }
  const voice = {
    language,
    weights: { conditioners: [] },
    codec: bareCodec,
  }
  const bare = createTts(voice as never, device, missing, () => {})
  await expect(bare.say('Hello.')).rejects.toThrow('npm i @echogarden/espeak-ng-emscripten')
})

describe('what is read', () => {
  const given: string[] = []
  const phonemizer: Phonemizer = {
    phonemes(text, language) {
      given.push(`${language}: ${text}`)
      throw new InputError('read')
    },
  }
  const voice = {
    language: { config: bareConfig },
    weights: {},
    codec: bareCodec,
  }
  const reader = createTts(
    voice as never,
    cpuDevice('test'),
    () => Promise.resolve(phonemizer),
    () => {},
  )
  const dictionary = { tomato: '/təmˈɑːtoʊ/', SQL: 'sequel' }
  test.each<[string, SayOptions, string]>([
    ['At 5:30 it is 3.5 kg.', {}, 'en-us: At five thirty it is three point five kilograms.'],
    ['1.05 in 1999', { numbers: 'upstream' }, 'en-us: one point five in nineteen ninety-nine'],
    ['5 kg', { numbers: 'as written' }, 'en-us: 5 kg'],
    ['5 kg', { language: 'de' }, 'de: 5 kg'],
    ['5 kg', { language: 'en-gb' }, 'en-gb: five kilograms'],
    ['5 kg', { language: 'de', numbers: 'spoken' }, 'de: five kilograms'],
    ['A Tomato, 2 SQL.', { dictionary }, 'en-us: A /təmˈɑːtoʊ/, two sequel.'],
    ['/a1b/ 7', {}, 'en-us: /a1b/ seven'],
  ])('%s %j', async (text, options, want) => {
    given.length = 0
    await expect(reader.say(text, options)).rejects.toThrow('read')
    expect(given).toEqual([want])
  })
  test.each<[SayOptions, RegExp]>([
    [{ numbers: 'other' as never }, /^numbers: "other" is no style/],
    [{ dictionary: { a: '' } }, /^dictionary: "a" has ""/],
  ])('refuses %j', async (options, message) => {
    await expect(reader.say('a', options)).rejects.toThrow(message)
  })
})

test('prints how far it is and how it went', () => {
  const line = printSpeechProgress({ frames: 43, expectedFrames: 86, seconds: 2 }, { framesPerSecond: 86 })
  expect(line).toBe('speaking 0.5 s, 0.25 times real time, about 2 s left')
  const report: SpeechReport = {
    ...{ sampleRate: 44100, seconds: 1, phonemes: 'haɪ', unknown: ['ß'], seed: 3, ended: 'length', warnings: [] },
    pieces: [{ text: 'Hi', phonemes: 'haɪ', seconds: 1, ended: 'length', seed: 3 }],
    took: { first: 0.25, language: 1.5, codec: 0.5, all: 2 },
  }
  const said =
    'speech: 1.00 s in 2.0 s (codes 1.5 s, sound 0.5 s), 0.50 times real time, first sound after 0.25 s, seed 3'
  expect(printSpoken(report)).toEqual([
    said,
    'note: the model does not know "ß"',
    'note: it did not come to an end by itself; --max-seconds allows more',
  ])
  const two = { ...report, pieces: [...report.pieces, ...report.pieces], unknown: [], ended: 'eos' } as const
  expect(printSpoken(two)).toEqual([said.replace('seed', '2 pieces, seed')])
})
