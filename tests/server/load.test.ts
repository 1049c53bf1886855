import { connect } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterAll, expect, test } from 'vitest'
import { loadDecider } from '../../src/apps/decider/load.ts'
import { openDevice } from '../../src/device/open.ts'
import { createServer } from '../../src/server.ts'
import { listen } from '../../src/server/listen.ts'
import { expectNoUnhandledRejection } from '../device/faulty.ts'
import { asking, JSON_TYPE } from './fake.ts'

expectNoUnhandledRejection()
setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

const full = process.env.PRONOUNCE_FULL === '1'
const SECONDS = full ? 120 : 5
const CLIENTS = 64
const BATCH_TOKENS = 256
const MB = 2 ** 20

const device = await openDevice('webgpu', { precision: 'f32' })
const decider = await loadDecider('public/models/decider-nano', { device, prefixBytes: 4 * MB })
const news: string[] = []
const server = createServer({
  decider,
  batchTokens: BATCH_TOKENS,
  limits: { maxQueueRows: 12 }, // fewer than the clients ask for at once
  onNews: (line) => news.push(line),
})
const { url, close } = await listen(server, { host: '127.0.0.1', port: 0, timeoutSeconds: 60 })

afterAll(async () => {
  await decider.dispose()
  expect(device.memory.keptBytes).toBe(0)
  await device.dispose()
})

const long = 'The card was charged twice and nobody answers the telephone. '.repeat(16) // shares its prefix
const good: readonly (readonly [path: string, body: string])[] = [
  ...['Charged twice.', ''].map((state) => ['/v1/systemone', asking(2, state)] as const),
  ...(full ? [['/v1/systemone', asking(2, long)] as const] : []),
  [
    '/v1/systemone',
    JSON.stringify({
      state: [1, 2],
      questions: { m: { type: 'score', instructions: 'How many?', criteria: ['a', 'b', 'c'] } },
    }),
  ],
  [
    '/decide',
    JSON.stringify({
      context: 'Hello.',
      schema: { 'Is it urgent?': { type: 'bool' }, 'Who?': { options: ['a', 'b'] } },
    }),
  ],
]
const malformed = ['', '{', '[]', '{"state":"x","questions":{"q":{"criteria":["a"]}}}', '\u0000', '{"context":1}']

const post = (path: string, body: string, signal?: AbortSignal): Promise<Response> =>
  fetch(`${url}${path}`, { method: 'POST', headers: JSON_TYPE, body, signal: signal ?? null })

/** The same numbers in every run of the test: xorshift. */
function randomOf(seed: number): (below: number) => number {
  let s = seed
  return (below) => {
    s ^= s << 13
    s ^= s >>> 17
    s ^= s << 5
    return (s >>> 0) % below
  }
}

/** One client: right requests, whose answers have to be those that they have alone, and all that a client gets wrong. */
async function client(seed: number, expected: readonly string[], counts: Record<string, number>, end: number) {
  const random = randomOf(seed)
  const count = (what: string | number) => {
    counts[what] = (counts[what] ?? 0) + 1
  }
  while (performance.now() < end) {
    const kind = random(10)
    const which = random(good.length)
    const [path, body] = good[which]!
    if (kind < 6) {
      const response = await post(path, body)
      const text = await response.text()
      count(response.status)
      if (response.status === 200) expect(text).toBe(expected[which])
      else expect(response.status, text).toBe(503)
      if (response.status === 503) await new Promise((resolve) => setTimeout(resolve, random(100)))
    } else if (kind < 8) {
      const abort = new AbortController()
      setTimeout(() => abort.abort(), random(200))
      await post(path, body, abort.signal).then(
        async (response) => {
          expect([200, 503]).toContain(response.status)
          await response.text().catch(() => {})
        },
        () => count('cancelled'),
      )
    } else if (kind < 9) {
      const response = await post(path, malformed[random(malformed.length)]!)
      expect([400, 422], await response.text()).toContain(response.status)
      count('malformed')
    } else {
      const whole = `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n${body}`
      await breakOff(whole.slice(0, 10 + random(whole.length)))
      count('broken off')
    }
  }
}

/** Sends the beginning of a request and goes away. */
const breakOff = (text: string): Promise<void> =>
  new Promise((resolve) => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1', () => socket.write(text, () => socket.destroy()))
    socket.on('error', () => {}).on('close', () => resolve())
  })

const stats = async () =>
  (await (await fetch(`${url}/stats`)).json()) as { outstanding_rows: number; batch_hist: object }

/** What is in use when nothing is under way. */
async function settled() {
  while ((await stats()).outstanding_rows > 0) await new Promise((resolve) => setTimeout(resolve, 10))
  for (let i = 0; i < 3; i++) {
    collect()
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  const { heapUsed, external } = process.memoryUsage()
  return { heap: heapUsed + external, device: device.memory }
}

test(`${CLIENTS} clients for ${SECONDS} s`, { timeout: (SECONDS + 300) * 1000 }, async () => {
  const expected: string[] = []
  for (const [path, body] of good) {
    const response = await post(path, body)
    expect(response.status).toBe(200)
    expected.push(await response.text())
  }
  const row = { ids: Array<number>(32).fill(1), slots: [31] }
  await decider.score(Array<typeof row>(BATCH_TOKENS / 32).fill(row)) // the cache has the rows of a full run from now on
  const counts: Record<string, number> = {}
  const load = (seconds: number, seed: number) => {
    const end = performance.now() + seconds * 1000
    return Promise.all(Array.from({ length: CLIENTS }, (_, i) => client(seed + i + 1, expected, counts, end)))
  }
  await load(SECONDS / 5, 0)
  const before = await settled()
  await load(SECONDS, CLIENTS)
  const after = await settled()

  for (const what of [200, 503, 'cancelled', 'malformed', 'broken off'])
    expect(counts[what], `${what}`).toBeGreaterThan(0)
  expect(Object.keys((await stats()).batch_hist).length, 'runs of several sizes').toBeGreaterThan(1)
  expect(after.device).toEqual(before.device)
  expect(after.heap - before.heap, 'bytes of JS heap').toBeLessThan(4 * MB)
  expect(news).toEqual([])
  await close()
})
