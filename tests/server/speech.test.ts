import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { DeviceError, InputError } from '../../src/errors.ts'
import { decodeWav } from '../../src/media/wav.ts'
import type { SayRequest, ServerOptions, Speaker } from '../../src/server.ts'
import { voiceSeed } from '../../src/server/speech.ts'
import { get, hashScorer, post, read, serverOf, until } from './fake.ts'

const RATE = 44_100
const PARTS = [Float32Array.of(0, 0.5, -0.5), Float32Array.of(0.25)]

/** A voice that says parts, each when it is let go on; it remembers what it was asked. */
function fakeSpeaker(say?: Speaker['say']) {
  const asked: (SayRequest & { text: string })[] = []
  const gates: (() => void)[] = []
  let ended = 0
  const speaker: Speaker = {
    sampleRate: RATE,
    say(text, options) {
      asked.push({ text, ...options })
      return say ? say(text, options) : parts(options.signal)
    },
  }
  async function* parts(signal: AbortSignal) {
    try {
      for (const part of PARTS) {
        await new Promise<void>((resolve, reject) => {
          gates.push(resolve)
          signal.addEventListener('abort', () => reject(signal.reason))
        })
        yield part
      }
    } finally {
      ended++
    }
  }
  return { open: async () => speaker, asked, gates, ended: () => ended }
}

const prompt = async function* (): AsyncGenerator<Float32Array> {
  yield* PARTS
}
const serverWith = (speaker: () => Promise<Speaker>, options: Partial<ServerOptions> = {}) =>
  serverOf(hashScorer(), { speaker, ...options })
const speech = (server: ReturnType<typeof serverWith>, body: object, init: RequestInit = {}) =>
  post(server, '/v1/audio/speech', JSON.stringify({ model: 'tts-1', voice: 'alloy', ...body }), init)
const refusal = (message: string, param: string | null = null, type = 'invalid_request_error') => ({
  error: { message: expect.stringContaining(message), type, param, code: null },
})

describe('sound', () => {
  test('as WAV', async () => {
    const { open, asked } = fakeSpeaker(prompt)
    const response = await speech(serverWith(open), { input: 'Hi.', speed: 2, seed: 7, voice: '3' })
    expect(response.headers.get('content-type')).toBe('audio/wav')
    const { rate, channels } = decodeWav(new Uint8Array(await response.arrayBuffer()))
    expect(rate).toBe(RATE)
    expect(channels).toEqual([Float32Array.of(0, 0.5, -0.5, 0.25)])
    expect(asked).toMatchObject([{ text: 'Hi.', voice: 3, speakingRate: 30, seed: 7, language: 'en-us' }])
  })
  test('as PCM, sent while the rest is made', async () => {
    const { open, gates } = fakeSpeaker()
    const pending = speech(serverWith(open), { input: 'Hi.', response_format: 'pcm' })
    await until(() => gates.length === 1)
    gates[0]!()
    const { headers, body } = await pending
    expect(headers.get('content-type')).toBe(`audio/pcm;rate=${RATE};channels=1`)
    const reader = body!.getReader()
    const first = await reader.read()
    expect(new Int16Array(first.value!.buffer)).toEqual(Int16Array.of(0, 16384, -16384))
    gates[1]!()
    expect(new Int16Array((await reader.read()).value!.buffer)).toEqual(Int16Array.of(8192))
    expect((await reader.read()).done).toBe(true)
  })
  test('as events', async () => {
    const { open } = fakeSpeaker(prompt)
    const response = await speech(serverWith(open), { input: 'Hi.', response_format: 'pcm', stream_format: 'sse' })
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    const delta = (...samples: number[]) => ({
      type: 'speech.audio.delta',
      audio: Buffer.from(Int16Array.from(samples).buffer).toString('base64'),
    })
    const events = [delta(0, 16384, -16384), delta(8192), { type: 'speech.audio.done' }]
    expect(await response.text()).toBe(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(''))
  })
  test('the document knows it', async () => {
    const document = await (await get(serverWith(fakeSpeaker().open), '/openapi.json')).json()
    expect(Object.keys(document.paths)).toContain('/v1/audio/speech')
    expect(document.components.schemas.SpeechRequest.required).toEqual(['input'])
  })
  test('the seed of a voice is its number, or goes by its name', () => {
    expect([voiceSeed('0'), voiceSeed('12'), voiceSeed(7)]).toEqual([0, 12, 7])
    expect(voiceSeed('alloy')).toBe(voiceSeed('alloy'))
    expect(voiceSeed('alloy')).not.toBe(voiceSeed('echo'))
    expect(voiceSeed('99999999999')).toBeLessThan(2 ** 31)
  })
})

describe('refusals, as OpenAI words them', () => {
  test.each([
    [{}, 'input', 'input'],
    [{ input: '' }, 'input', 'input'],
    [{ input: 'x'.repeat(4097) }, 'input', 'input'],
    [{ input: 'Hi.', response_format: 'mp3' }, 'wav', 'response_format'],
    [{ input: 'Hi.', speed: 9 }, 'speed', 'speed'],
    [{ input: 'Hi.', voice: -1 }, 'voice', 'voice'],
  ])('%j', async (body, message, param) => {
    expect(await read(speech(serverWith(fakeSpeaker().open), body))).toEqual([400, refusal(message, param)])
  })
  test('no JSON', async () => {
    const refused = await read(post(serverWith(fakeSpeaker().open), '/v1/audio/speech', '{'))
    expect(refused).toEqual([400, refusal('the body is not JSON')])
  })
  test.each([
    [new InputError('say: nothing to say'), 400, refusal('nothing to say', 'input')],
    [new DeviceError('lost', 'it fell off'), 503, refusal('it fell off; retry later', null, 'server_error')],
  ])('%s before the first sample', async (error, status, expected) => {
    const fails = fakeSpeaker(() => ({ [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(error) }) }))
    expect(await read(speech(serverWith(fails.open), { input: 'Hi.' }))).toEqual([status, expected])
    const away = serverWith(() => Promise.reject(error))
    expect(await read(speech(away, { input: 'Hi.' }))).toEqual([status, expected])
  })
  test('an error after the first sample breaks the body off', async () => {
    const { open } = fakeSpeaker(async function* () {
      yield PARTS[0]!
      throw new DeviceError('lost', 'it fell off')
    })
    const response = await speech(serverWith(open), { input: 'Hi.' })
    expect(response.status).toBe(200)
    await expect(response.arrayBuffer()).rejects.toThrow('it fell off')
  })
  test('too many at once: 503, and room again when one ends', async () => {
    const { open, gates, ended } = fakeSpeaker()
    const server = serverWith(open, { maxSpeeches: 1 })
    const first = speech(server, { input: 'Hi.' })
    await until(() => gates.length === 1)
    expect(await read(speech(server, { input: 'Hi.' }))).toEqual([503, refusal('server busy', null, 'server_error')])
    gates[0]!()
    await until(() => gates.length === 2)
    gates[1]!()
    await (await first).arrayBuffer()
    expect(ended()).toBe(1)
    void speech(server, { input: 'Hi.' })
    await until(() => gates.length === 3)
  })
})

describe('a client that goes away', () => {
  test('before the first sample', async () => {
    const { open, gates, ended } = fakeSpeaker()
    const abort = new AbortController()
    const gone = speech(serverWith(open), { input: 'Hi.' }, { signal: abort.signal })
    await until(() => gates.length === 1)
    abort.abort()
    expect((await gone).status).toBe(499)
    await until(() => ended() === 1)
  })
  test('while it listens', async () => {
    const { open, gates, ended } = fakeSpeaker()
    const server = serverWith(open, { maxSpeeches: 1 })
    const pending = speech(server, { input: 'Hi.' })
    await until(() => gates.length === 1)
    gates[0]!()
    await (await pending).body!.cancel()
    await until(() => ended() === 1)
    await server.close() // waits for nothing
  })
})

describe('time', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  })
  afterEach(() => {
    vi.useRealTimers()
  })
  /** Speech whose first part came after 9 of 10 s. */
  async function begun() {
    const { open, gates, ended } = fakeSpeaker()
    const pending = speech(serverWith(open, { timeoutSeconds: 10 }), { input: 'Hi.' })
    await until(() => gates.length === 1)
    vi.advanceTimersByTime(9_000)
    gates[0]!()
    const response = await pending
    await until(() => gates.length === 2)
    return { response, gates, ended }
  }
  test('begins anew with every part', async () => {
    const { response, gates } = await begun()
    vi.advanceTimersByTime(9_000)
    gates[1]!()
    expect((await response.arrayBuffer()).byteLength).toBe(44 + 8)
  })
  test('a part that does not come breaks the body off', async () => {
    const { response, ended } = await begun()
    vi.advanceTimersByTime(10_000)
    await expect(response.arrayBuffer()).rejects.toThrow('no answer within 10 s')
    expect(ended()).toBe(1)
  })
})

test('close waits for what is being said', async () => {
  const { open, gates } = fakeSpeaker()
  const server = serverWith(open)
  const pending = speech(server, { input: 'Hi.' })
  await until(() => gates.length === 1)
  gates[0]!()
  const response = await pending
  let closed = false
  const closing = server.close().then(() => {
    closed = true
  })
  await until(() => gates.length === 2)
  expect(closed).toBe(false)
  gates[1]!()
  await closing
  expect((await response.arrayBuffer()).byteLength).toBe(44 + 8)
})
