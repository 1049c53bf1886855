import { describe, expect, test } from 'vitest'
import { asking, get, hashScorer, JSON_TYPE, post, read, serverOf, URL_BASE } from './fake.ts'

const { score } = hashScorer()
const server = serverOf({ score })
const from = (headers: Record<string, string>) => ({ headers: { ...JSON_TYPE, ...headers } })
const detail = (text: string) => ({ detail: expect.stringContaining(text) })

describe('the Host header', () => {
  test.each(['localhost', 'localhost:8000', '127.0.0.1:1', '[::1]:8000', 'LOCALHOST'])('%s is let in', async (host) => {
    expect((await post(server, '/v1/systemone', asking(1), from({ host }))).status).toBe(200)
  })
  test.each(['evil.example', 'localhost.evil.example', '127.0.0.1.nip.io', '10.0.0.1', '0.0.0.0', 'a b'])(
    '%s is not: a page could have made that name lead here',
    async (host) => {
      const refused = await read(post(server, '/v1/systemone', asking(1), from({ host })))
      expect(refused).toEqual([403, detail(`the Host header has "${host}"`)])
    },
  )
  test('a name that was allowed', async () => {
    const open = serverOf({ score }, { allowHosts: ['Decider.Example'] })
    const request = (name: string) => open.fetch(new Request(`http://${name}:80/health`))
    expect((await request('decider.example')).status).toBe(200)
    expect((await request('other.example')).status).toBe(403)
  })
})

describe('the Origin header', () => {
  test('of its own pages is let in, and so is none', async () => {
    const host = 'localhost:8000'
    expect((await get(server, '/health', { host, origin: URL_BASE })).status).toBe(200)
    expect((await get(server, '/health', { host })).status).toBe(200)
  })
  test.each(['https://evil.example', 'http://localhost:3000', 'null'])('%s is not', async (origin) => {
    const response = await post(server, '/v1/systemone', asking(1), from({ origin }))
    expect(response.headers.get('access-control-allow-origin')).toBeNull()
    expect(await read(response)).toEqual([403, detail('the Origin header has')])
  })
  test('of a page that was allowed: preflight and request', async () => {
    const origin = 'https://example.org'
    const open = serverOf({ score }, { allowOrigins: [origin], apiKey: 'secret' })
    const ask = { origin, 'access-control-request-method': 'POST', 'access-control-request-headers': 'content-type' }
    const preflight = await open.fetch(new Request(`${URL_BASE}/decide`, { method: 'OPTIONS', headers: ask }))
    expect(preflight.status).toBe(204)
    expect(preflight.headers.get('access-control-allow-origin')).toBe(origin)
    expect(preflight.headers.get('access-control-allow-headers')).toBe('content-type')
    const answered = await post(open, '/v1/systemone', asking(1), from({ origin, authorization: 'Bearer secret' }))
    expect(answered.status).toBe(200)
    expect(answered.headers.get('access-control-allow-origin')).toBe(origin)
    const refused = await post(open, '/v1/systemone', '{', from({ origin, authorization: 'Bearer secret' }))
    expect([refused.status, refused.headers.get('access-control-allow-origin')]).toEqual([422, origin]) // it may read why
    expect((await post(open, '/v1/systemone', asking(1), from({ origin: 'https://evil.example' }))).status).toBe(403)
  })
})

describe('the content type of a body', () => {
  test.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/jsonx',
  ])('%s is refused: a page may send it unasked', async (type) => {
    const refused = await read(post(server, '/v1/systemone', asking(1), { headers: { 'content-type': type } }))
    expect(refused).toEqual([415, detail('expected application/json')])
  })
  test('none is refused', async () => {
    const refused = await read(post(server, '/v1/systemone', new TextEncoder().encode(asking(1)), { headers: {} }))
    expect(refused).toEqual([415, detail('the content type is missing')])
  })
  test('parameters are let in', async () => {
    const headers = { 'content-type': 'Application/JSON; charset=utf-8' }
    expect((await post(server, '/v1/systemone', asking(1), { headers })).status).toBe(200)
  })
})

describe('a key', () => {
  const open = serverOf({ score }, { apiKey: 'secret' })
  test('is asked for everywhere', async () => {
    for (const path of ['/health', '/stats', '/v1/models', '/openapi.json', '/nothing']) {
      const response = await get(open, path)
      expect(response.headers.get('www-authenticate')).toMatch(/^Bearer/)
      expect(await read(response)).toEqual([401, detail('expected Authorization: Bearer <key>')])
    }
  })
  test.each([
    ['Bearer wrong', 401],
    ['Bearer secrets', 401],
    ['Basic secret', 400],
    ['Bearer', 400],
    ['Bearer secret', 200],
    ['bearer secret', 200],
  ])('%s: %d', async (authorization, status) => {
    expect((await get(open, '/health', { authorization })).status).toBe(status)
  })
  test('that cannot be sent is refused at the start', () => {
    expect(() => serverOf({ score }, { apiKey: 'ä secret' })).toThrow('apiKey: has other characters')
  })
})
