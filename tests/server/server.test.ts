import { describe, expect, test } from 'vitest'
import type { Scorer } from '../../src/apps/decider/scorer.ts'
import { cpuDevice } from '../../src/device/cpu.ts'
import { DeviceError, WeightsError } from '../../src/errors.ts'
import { createServer } from '../../src/server.ts'
import { asking, deciderOf, get, hashScorer, JSON_TYPE, post, read, serverOf, until, URL_BASE } from './fake.ts'

const { score } = hashScorer()
const server = serverOf({ score })

describe('answers', () => {
  test('/v1/systemone, keys in the order of the original', async () => {
    const response = await post(server, '/v1/systemone', asking(2))
    const body = await response.text()
    expect(response.status).toBe(200)
    expect(body).toMatch(/^\{"model":"decider-nano-1","answers":\{"q0":\{"type":"noul","noul":0\.\d+\},"q1":/)
    expect(body).toMatch(/"usage":\{"input_tokens":\d+,"output_tokens":0\}\}$/)
  })
  test('no questions: no answers', async () => {
    const empty = { model: 'decider-nano-1', answers: {}, usage: { input_tokens: 0, output_tokens: 0 } }
    expect(await read(post(server, '/v1/systemone', '{"state":"x","questions":{}}'))).toEqual([200, empty])
  })
  test('/decide', async () => {
    const body = JSON.stringify({
      context: 'x',
      schema: { 'Which?': { options: ['a', 'b'] }, 'Is it?': { type: 'bool' } },
    })
    const [status, answers] = await read(post(server, '/decide', body))
    expect(status).toBe(200)
    expect(answers).toMatchObject({ 'Which?': { type: 'choice' }, 'Is it?': { type: 'noul' } })
  })
  test('/v1/models', async () => {
    const description = 'decider: one-pass typed decisions with calibrated probabilities'
    const models = [{ name: 'decider-nano-1', description, release_date: '2026-09-17' }]
    expect(await read(get(server, '/v1/models'))).toEqual([200, { models }])
  })
  test('/health', async () => {
    const named = createServer({ decider: deciderOf({ score }), model: 'a/folder' })
    const temperature_by_type = { choice: 2.798, noul: 3.108, score: 4.768 }
    expect(await read(get(named, '/health'))).toEqual([
      200,
      {
        ...{ ok: true, model: 'a/folder', device: 'cpu', layout: 'plain', temperature: 2.992, temperature_by_type },
        device_report: expect.objectContaining({ dtype: 'f32', line: expect.stringContaining('CPU') }),
      },
    ])
  })
  test('/stats counts', async () => {
    const own = serverOf({ score })
    await Promise.all([post(own, '/v1/systemone', asking(3)), post(own, '/v1/systemone', asking(1))])
    await post(own, '/v1/systemone', '{')
    const [, stats] = await read(get(own, '/stats'))
    expect(stats).toMatchObject({
      ...{ requests: 2, batches: 1, decisions: 4, rows: 4, errors: 1, outstanding_rows: 0 },
      ...{ batch_hist: { 4: 1 }, bucket_hist: { 64: 4 }, shared_prefix_requests: 0 },
      engine: { forwards: 1, eager_rows: 4 },
      limits: { max_rows: 1024, max_row_tokens: 36864, max_request_tokens: 1048576, max_queue_rows: 4096 },
    })
  })
  test('/openapi.json describes every route', async () => {
    const [status, document] = (await read(get(server, '/openapi.json'))) as [number, { paths: object }]
    expect(status).toBe(200)
    expect(Object.keys(document.paths)).toEqual(['/v1/systemone', '/decide', '/v1/models', '/health', '/stats'])
    expect(document).toMatchObject({
      openapi: '3.1.0',
      components: { schemas: { SystemOneRequest: { required: ['state', 'questions'] } } },
    })
  })
})

describe('refusals', () => {
  test.each([
    ['no JSON', '/v1/systemone', '{', 422],
    ['no state', '/v1/systemone', '{"questions":{}}', 422],
    ['one option', '/v1/systemone', '{"state":"x","questions":{"q":{"instructions":"?","criteria":["a"]}}}', 422],
    ['no schema', '/decide', '{"context":"x"}', 422],
  ])('%s', async (_, path, body, status) => {
    expect(await read(post(server, path, body))).toEqual([status, { detail: expect.anything() }])
  })
  test('bytes that are no UTF-8', async () => {
    const refused = await read(post(server, '/decide', Uint8Array.of(123, 255)))
    expect(refused).toEqual([400, { detail: 'There was an error parsing the body' }])
  })
  test.each([
    [{ maxRows: 2 }, 'too many questions: the request expands to 3 scoring rows, the limit is 2 (DECIDER_MAX_ROWS)'],
    [
      { maxRowTokens: 9 },
      /^too many tokens: one row has \d+ tokens, the limit is 9 per row \(DECIDER_MAX_ROW_TOKENS\)$/,
    ],
    [{ maxRequestTokens: 9 }, /^too many tokens: the request has \d+ tokens over 3 rows, the limit is 9 /],
    [{ maxQueueRows: 2 }, /^too many questions: .* the limit is 2 /], // could never be taken
  ])('over the limits %j', async (limits, expected) => {
    const [status, { detail }] = (await read(post(serverOf({ score }, { limits }), '/v1/systemone', asking(3)))) as [
      number,
      { detail: string },
    ]
    expect(status).toBe(413)
    expect(detail).toMatch(expected)
  })
  test.each([true, false])('a body over the limit, its length told: %s', async (told) => {
    const small = serverOf({ score }, { maxBodyBytes: 100 })
    const body = new Blob([asking(9)])
    const headers = told ? { ...JSON_TYPE, 'content-length': String(body.size) } : JSON_TYPE
    const init = { method: 'POST', headers, body: body.stream(), duplex: 'half' }
    const refused = await read(small.fetch(new Request(`${URL_BASE}/v1/systemone`, init)))
    expect(refused).toEqual([
      413,
      { detail: 'the body has more than 100 bytes, which is the limit; send less at once' },
    ])
  })
  test('what is not there, and the wrong method', async () => {
    expect(await read(get(server, '/v2'))).toEqual([404, { detail: 'Not Found' }])
    expect(await read(get(server, '/v1/audio/speech'))).toEqual([404, { detail: 'Not Found' }])
    const response = await get(server, '/v1/systemone')
    expect(response.headers.get('allow')).toBe('POST')
    expect(await read(response)).toEqual([405, { detail: 'Method Not Allowed' }])
  })
})

/** A scorer that waits for the abort of its signal. */
const stuck = () => {
  const signals: AbortSignal[] = []
  const score: Scorer['score'] = (_, options) =>
    new Promise((_, reject) => {
      const signal = options!.signal!
      signals.push(signal)
      signal.addEventListener('abort', () => reject(signal.reason))
    })
  return { score, signals }
}

describe('requests that are not answered', () => {
  test('a full queue: 503, and room again when it is empty', async () => {
    const slow = hashScorer(20)
    const small = serverOf(slow, { limits: { maxQueueRows: 4 } })
    const three = await Promise.all([1, 2, 3].map(() => post(small, '/v1/systemone', asking(3))))
    expect(three.map(({ status }) => status)).toEqual([200, 503, 503])
    expect(three[1]!.headers.get('retry-after')).toBe('1')
    const detail = 'server busy: 3 rows queued, the limit is 4 (DECIDER_MAX_QUEUE_ROWS); retry later'
    expect(await read(three[1]!)).toEqual([503, { detail }])
    expect((await post(small, '/v1/systemone', asking(3))).status).toBe(200)
    const [, stats] = await read(get(small, '/stats'))
    expect(stats).toMatchObject({ rejected_overloaded: 2, rejected_too_large: 0 })
  })
  test('a client that goes away stops its run', async () => {
    const { score, signals } = stuck()
    const own = serverOf({ score })
    const abort = new AbortController()
    const gone = post(own, '/v1/systemone', asking(1), { signal: abort.signal })
    await until(() => signals.length === 1)
    abort.abort()
    expect((await gone).status).toBe(499)
    expect(signals[0]!.aborted).toBe(true)
    expect(await read(get(own, '/stats'))).toMatchObject([200, { outstanding_rows: 0 }])
  })
  test('too long a wait: 503', async () => {
    const { score, signals } = stuck()
    const own = serverOf({ score }, { timeoutSeconds: 1 })
    const refused = await read(post(own, '/v1/systemone', asking(1)))
    expect(refused).toEqual([503, { detail: 'no answer within 1 s; retry later' }])
    expect(signals[0]!.aborted).toBe(true)
  })
  test('a body that breaks off: 400, and no word to the user of the server', async () => {
    const news: string[] = []
    const own = serverOf({ score }, { onNews: (line) => news.push(line) })
    const body = new ReadableStream({ pull: (controller) => controller.error(new Error('reset')) })
    const init = { method: 'POST', headers: JSON_TYPE, body, duplex: 'half' }
    const refused = await read(own.fetch(new Request(`${URL_BASE}/decide`, init)))
    expect(refused).toEqual([400, { detail: 'the body broke off' }])
    expect(news).toEqual([])
  })
  test('a body that does not end: 503', async () => {
    const own = serverOf({ score }, { timeoutSeconds: 0.02 })
    const init = { method: 'POST', headers: JSON_TYPE, body: new ReadableStream(), duplex: 'half' }
    expect((await own.fetch(new Request(`${URL_BASE}/decide`, init))).status).toBe(503)
  })
  test('a full device: 503, a damaged model: 500 and a word to the user of the server', async () => {
    const news: string[] = []
    const failing = (error: Error) =>
      serverOf({ score: () => Promise.reject(error) }, { onNews: (line) => news.push(line) })
    const full = failing(new DeviceError('memory', 'allocate: no room'))
    expect(await read(post(full, '/v1/systemone', asking(1)))).toEqual([
      503,
      { detail: 'allocate: no room; retry later' },
    ])
    expect(news).toEqual([])
    const damaged = failing(new WeightsError('format', 'readout: NaN'))
    expect(await read(post(damaged, '/v1/systemone', asking(1)))).toEqual([500, { detail: 'Internal Server Error' }])
    expect(news).toEqual([expect.stringContaining('readout: NaN')])
  })
})

describe('a lost device', () => {
  const losing = (recover: () => Promise<void>) => {
    const state = { lost: false, recoveries: 0 }
    const news: string[] = []
    const decider = deciderOf(
      { score: async (rows) => (state.lost ? Promise.reject(new DeviceError('lost', 'it fell off')) : score(rows)) },
      {
        recover() {
          state.recoveries++
          return recover()
        },
      },
    )
    return { state, news, server: createServer({ decider, onNews: (line) => news.push(line) }) }
  }
  const ask = (server: ReturnType<typeof losing>['server']) => post(server, '/v1/systemone', asking(1))

  test('answers 503 until the model is loaded again', async () => {
    let loaded = (): void => {}
    const { state, news, server } = losing(() => new Promise((resolve) => (loaded = resolve)))
    expect((await ask(server)).status).toBe(200)
    state.lost = true
    const detail = 'the device was lost and the model is being loaded again; retry later'
    expect(await read(ask(server))).toEqual([503, { detail }])
    expect(await read(ask(server))).toEqual([503, { detail }])
    expect(await read(get(server, '/health'))).toMatchObject([503, { ok: false }])
    expect(state.recoveries).toBe(1)
    state.lost = false
    loaded()
    await until(() => news.length === 2)
    expect((await ask(server)).status).toBe(200)
    expect((await get(server, '/health')).status).toBe(200)
    expect(news).toEqual([expect.stringContaining('it fell off'), expect.stringContaining('loaded again: CPU')])
  })
  test('that could not be loaded again is tried at the next request', async () => {
    let works = false
    const { state, news, server } = losing(() => (works ? Promise.resolve() : Promise.reject(new Error('no adapter'))))
    state.lost = true
    expect((await ask(server)).status).toBe(503)
    await until(() => news.length === 2)
    expect(news[1]).toContain('no adapter')
    works = true
    state.lost = false
    expect((await ask(server)).status).toBe(503)
    await until(() => news.length === 4)
    expect((await ask(server)).status).toBe(200)
    expect(state.recoveries).toBe(2)
  })
  test('is noticed without a request', async () => {
    let lose = (_: string): void => {}
    const lost = new Promise<string>((resolve) => (lose = resolve))
    const devices = [{ ...cpuDevice('first'), lost }, cpuDevice('second')]
    const decider = deciderOf({ score })
    let at = 0
    Object.defineProperty(decider, 'device', { get: () => devices[at] })
    const news: string[] = []
    const own = createServer({
      decider: Object.assign(decider, { recover: async () => void at++ }),
      onNews: (line) => news.push(line),
    })
    lose('pulled out')
    await until(() => news.length === 2)
    expect(news[0]).toContain('pulled out')
    expect((await ask(own)).status).toBe(200)
  })
})

test('close answers what is under way and refuses what comes', async () => {
  const own = serverOf(hashScorer(20))
  const before = post(own, '/v1/systemone', asking(1))
  let closed = false
  const closing = own.close().then(() => {
    closed = true
  })
  const after = await read(post(own, '/v1/systemone', asking(1)))
  expect(after).toEqual([503, { detail: 'the server is shutting down' }])
  expect(closed).toBe(false)
  expect((await before).status).toBe(200)
  await closing
})
