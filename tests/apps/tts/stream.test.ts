import { afterAll, beforeAll, describe, expect, expectTypeOf, test } from 'vitest'
import { loadTts } from '../../../src/apps/tts/load.ts'
import { createTts } from '../../../src/apps/tts/tts.ts'
import { cpuDevice } from '../../../src/device/cpu.ts'
import type { Device } from '../../../src/device/device.ts'
import { openDevice } from '../../../src/device/open.ts'
import type { SayOptions, Speech, SpeechChunk, SpeechReport, Spoken, Tts } from '../../../src/index.ts'
import { type LoadedDac, loadDac } from '../../../src/models/dac/load.ts'
import { zonosSession } from '../../../src/models/zonos/session.ts'
import { expectWithin } from '../../check.ts'
import { loadZonos } from '../../models/zonos/fixture.ts'
import { FRAMES_PER_SECOND, fakeVoice, HOP, speech } from './fake_voice.ts'

async function taken(speech: Speech): Promise<{ chunks: SpeechChunk[]; samples: Float32Array; report: SpeechReport }> {
  const chunks: SpeechChunk[] = []
  for await (const chunk of speech) chunks.push(chunk)
  const samples = Float32Array.from(chunks.flatMap(({ samples }) => [...samples]))
  return { chunks, samples, report: await speech.report }
}

const models = 'public/models'
const timeless = ({ took: _, ...report }: SpeechReport) => report

describe.each([
  ['cpu', async () => cpuDevice('test')],
  ['webgpu', () => openDevice('webgpu')],
] as const)('on %s', (kind, open) => {
  let device: Device
  let tts: Tts
  let codec: LoadedDac
  beforeAll(async () => {
    device = await open()
    tts = await loadTts(`${models}/zonos-nano`, { device, codec: `${models}/dac-nano` })
    codec = await loadDac(`${models}/dac-nano`, { device })
  })
  afterAll(() => device.dispose())

  test('streamed samples are those of the whole, and its codes decoded; memory stays as it is', async () => {
    const text = '/ɡˈʊd lˈʌk/!\n\n/haɪ/.'
    const options: SayOptions = { maxSeconds: 0.21, cfgScale: 1, sampling: { seed: 3 } }
    const whole = await tts.say(text, options)
    expect(whole.pieces).toHaveLength(2)
    const { keptBytes, slotBytes, buffers } = device.memory
    const { chunks, samples, report } = await taken(tts.say(text, options))
    expect(device.memory).toMatchObject({ keptBytes, slotBytes, buffers })
    expect(samples).toEqual(whole.samples)
    expect(timeless(report)).toEqual(timeless((({ samples: _, codes: __, ...rest }) => rest)(whole)))
    expect(chunks.map(({ piece }) => piece)).toEqual([0, 0, 1, 1, 1])
    let length = 0
    for (const { at, samples, sampleRate } of chunks) {
      expect(at).toBe(length / sampleRate)
      length += samples.length
    }
    expect(report.seconds).toBe(length / 44100)
    const decoded = await codec.decode(whole.codes.data)
    if (kind === 'cpu') expect(decoded).toEqual(whole.samples)
    else expectWithin(decoded, whole.samples, 2e-3, 0) // runs of other lengths sum in half precision
  })

  test('samples are the same where codes are read late', async () => {
    const { c, w } = await loadZonos(`${models}/zonos-nano`, device)
    const language = zonosSession(device, c, w, { pace: { every: 8, ahead: 1 } })
    const late = createTts(
      { language, weights: w, codec },
      device,
      () => Promise.reject(new Error('IPA')),
      () => {},
    )
    const options: SayOptions = { maxSeconds: 0.21, cfgScale: 1, sampling: { seed: 4 } }
    expect((await taken(late.say('/haɪ/!', options))).samples).toEqual((await tts.say('/haɪ/!', options)).samples)
  })

  test('the first chunk comes long before the last', async () => {
    const times: number[] = []
    const progress: number[] = []
    const speech = tts.say('/haɪ/!', {
      ...{ maxSeconds: 0.5, cfgScale: 1, sampling: { minFrames: 43 } },
      onProgress: ({ frames }) => progress.push(frames),
    })
    for await (const { samples } of speech) {
      expect(samples.length).toBeGreaterThan(0)
      times.push(progress.at(-1)!)
    }
    expect(times[0], 'frames that are known by then').toBeLessThan(44)
    expect(times.length).toBeGreaterThan(2)
    const { took } = await speech.report
    expect(took.first).toBeGreaterThan(0)
    expect(took.first).toBeLessThan(took.all)
  })

  test('leaving the loop stops the work, and so does an abort; the next call is as if alone', async () => {
    const options: SayOptions = { maxSeconds: 4, cfgScale: 1, sampling: { minFrames: 300, seed: 1 } }
    let frames = 0
    const onProgress: SayOptions['onProgress'] = (progress) => {
      frames = progress.frames
    }
    const speech = tts.say('/haɪ/!', { ...options, onProgress })
    for await (const { samples } of speech) {
      expect(samples.length).toBeGreaterThan(0)
      break
    }
    expect(frames).toBeLessThan(200)
    await expect(speech.report).rejects.toMatchObject({ name: 'AbortError' })
    await expect(speech).rejects.toMatchObject({ name: 'AbortError' })

    const abort = new AbortController()
    const aborted = taken(
      tts.say('/haɪ/!', { ...options, signal: abort.signal, onProgress: () => abort.abort('enough') }),
    )
    await expect(aborted).rejects.toBe('enough')
    const stopped = frames
    const brief: SayOptions = { maxSeconds: 0.1, cfgScale: 1 }
    expect((await taken(tts.say('/haɪ/!', brief))).samples).toEqual((await tts.say('/haɪ/!', brief)).samples)
    expect(frames, 'nothing goes on').toBe(stopped)
  })
})

describe('without a model', () => {
  const sentence = 'abcdefg abcdefg abcdefg abcd'
  /** Pieces of 6 s: three of them are more than a loop may leave lying. */
  const long = (pieces: number) => Array(pieces).fill(sentence.repeat(3)).join('!\n\n')
  const row = { frames: speech(Math.round(6 * FRAMES_PER_SECOND)) }

  test('who takes nothing for a while loses nothing, and holds up nobody', async () => {
    const { tts, asked } = fakeVoice(() => row)
    const whole = await tts.say(long(4))
    expect(asked).toHaveLength(4)
    const chunks = tts.say(long(4))[Symbol.asyncIterator]()
    const parts = [(await chunks.next()).value as SpeechChunk]
    expect((await tts.say(sentence)).pieces, 'is served meanwhile').toHaveLength(1)
    expect(asked.length, 'two pieces, and the other call').toBe(4 + 2 + 1)
    for (let next = await chunks.next(); !next.done; next = await chunks.next()) parts.push(next.value)
    expect(asked.length).toBe(4 + 4 + 1)
    expect(parts.flatMap(({ samples }) => [...samples])).toEqual([...whole.samples])
  })

  test('an abort is heard while it waits for who takes nothing', async () => {
    const { tts } = fakeVoice(() => row)
    const abort = new AbortController()
    const chunks = tts.say(long(4), { signal: abort.signal })[Symbol.asyncIterator]()
    await chunks.next()
    await tts.say(sentence)
    abort.abort('enough')
    await expect(chunks.next()).rejects.toBe('enough')
  })

  test('the loop takes the samples: the whole then says so, and the report is there', async () => {
    const { tts } = fakeVoice(() => row)
    const speech = tts.say(sentence)
    const { report } = await taken(speech)
    expect(report.pieces).toHaveLength(1)
    await expect(speech).rejects.toThrow(/^say: its samples went to the loop/)
  })

  test('a loop over what is there already gets all of it', async () => {
    const { tts } = fakeVoice(() => row)
    const speech = tts.say(sentence)
    const { samples } = await speech
    const { chunks } = await taken(speech)
    expect(chunks.map((chunk) => chunk.samples)).toEqual([samples])
  })

  test('chunks grow from 8 frames on', async () => {
    const { tts } = fakeVoice(() => row)
    const { chunks } = await taken(tts.say(sentence.repeat(3)))
    expect(chunks.map(({ samples }) => samples.length / HOP)).toEqual([8, 12, 18, 27, 40, 60, 90, 128, 134, 10])
  })

  test('what fails rejects the loop, the whole and the report', async () => {
    const { tts } = fakeVoice(() => {
      throw new RangeError('broken')
    })
    const speech = tts.say(sentence)
    await expect(taken(speech)).rejects.toThrow('broken')
    await expect(speech.report).rejects.toThrow('broken')
    await expect(tts.say(sentence)).rejects.toThrow('broken')
  })
})

test('types', () => {
  expectTypeOf<Tts['say']>().returns.resolves.toEqualTypeOf<Spoken>()
  expectTypeOf<Speech>().toExtend<AsyncIterable<SpeechChunk>>()
})
