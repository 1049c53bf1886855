import { mkdtemp, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Cache, openCache } from '../../src/weights/cache/cache.ts'
import type { DownloadProgress } from '../../src/weights/cache/progress.ts'
import { openSource, readFile as readWhole, readJson, type SourceOptions } from '../../src/weights/source.ts'
import { cut, type Hub, noise, serve, startHub } from './hub.ts'

const PIECE = 16 * 2 ** 20
const large = noise(2 * PIECE + 12345)
const config = new TextEncoder().encode('{"answer":42}')
const missing = { name: 'WeightsError', code: 'missing' }

let hub: Hub
let folder = ''
let cache: Cache
beforeAll(async () => {
  hub = await startHub({})
})
afterAll(() => hub.close())
beforeEach(async () => {
  hub.files.clear()
  hub.files.set('config.json', config).set('model.safetensors', large).set('sub/x.bin', noise(2000))
  Object.assign(hub, { commit: 'c'.repeat(40), listing: true, ranges: true, fault: undefined })
  hub.log.length = 0
  folder = await mkdtemp(join(tmpdir(), 'pronounce-'))
  cache = openCache({ folder })
})
afterEach(() => rm(folder, { recursive: true }))

const retry = { times: 2, ms: 1 }
const open = (options: SourceOptions = {}, name = 'hf:me/it') =>
  openSource(name, { base: hub.base, cache, retry, ...options })
const plain = (options: SourceOptions = {}) => open(options, `${hub.base}/plain`)
const pieces = join('/me/it', 'c'.repeat(40), 'model.safetensors')
async function pieceFile(index: number): Promise<string> {
  const [host] = await readdir(folder)
  return join(folder, host!, pieces, `${index}`)
}
/** Brings the large file in and reads a part of it. */
async function load(source = open(), signal?: AbortSignal): Promise<void> {
  await source.prepare!(['model.safetensors'], signal)
  expect(await source.read('model.safetensors', PIECE - 5, PIECE + 5)).toEqual(large.slice(PIECE - 5, PIECE + 5))
}
const fails = (code: string, text: string | RegExp) =>
  expect.objectContaining({ name: 'WeightsError', code, message: expect.stringMatching(text) })

describe('a model of the hub', () => {
  test('comes once, and is there without a network', async () => {
    const source = open()
    expect(await readJson(source, 'config.json')).toEqual({ answer: 42 })
    expect(await source.size('nothing.json')).toBeUndefined()
    expect(await readWhole(source, 'sub/x.bin')).toEqual(noise(2000))
    await load(source)
    expect(hub.reads()).toEqual([
      'hub config.json bytes=0-12',
      ...['hub', 'store'].map((host) => `${host} x.bin bytes=0-1999`),
      ...['hub', 'store'].map((host) => `${host} model.safetensors bytes=0-${large.length - 1}`),
    ])
    hub.log.length = 0
    for (const [offline, name] of [
      [false, 'hf:me/it'],
      [true, 'hf:me/it@main'],
      [true, `hf:me/it@${hub.commit}`],
    ] as const) {
      const again = open({ offline }, name)
      await load(again)
      expect(await readJson(again, 'config.json')).toEqual({ answer: 42 })
      expect(await again.size('nothing.json')).toBeUndefined()
      expect(Buffer.compare(await readWhole(again, 'model.safetensors'), large)).toBe(0)
    }
    expect(hub.log).toEqual([])
  })
  test('is small in the parts that are read before it is brought', async () => {
    hub.files.set('huge.safetensors', noise(65 * 2 ** 20))
    expect(await open().read('huge.safetensors', 8, 16)).toEqual(noise(16).slice(8))
    expect(hub.reads().at(-1)).toBe('store huge.safetensors bytes=8-15')
  })
  test('keeps the commit of its first load, until it is removed', async () => {
    await readJson(open(), 'config.json')
    Object.assign(hub, { commit: 'd'.repeat(40) })
    hub.files.set('config.json', new TextEncoder().encode('{"answer":43}'))
    expect(await readJson(open(), 'config.json')).toEqual({ answer: 42 })
    expect(await cache.remove('hf:me/it@main')).toBeGreaterThan(13)
    expect(await readJson(open(), 'config.json')).toEqual({ answer: 43 })
    expect((await cache.list()).map(({ name }) => name)).toEqual([`hf:me/it@${'d'.repeat(40)}`])
  })
  test('of a mirror without listings has the commit of its headers', async () => {
    hub.listing = false
    await load()
    expect((await cache.list()).map(({ name }) => name)).toEqual([`hf:me/it@${'c'.repeat(40)}`])
    hub.log.length = 0
    await load(open({ offline: true }))
    expect(hub.log).toEqual([])
  })
  test('that is private needs a token, which goes to the hub alone', async () => {
    hub.fault = ({ host, authorization }, response) => {
      if (host === 'store' || authorization === 'Bearer secret') return false
      response.writeHead(401).end()
      return true
    }
    await expect(load()).rejects.toEqual(fails('missing', /the server answers 401 .*pass a token/))
    hub.log.length = 0
    await load(open({ token: 'secret' }))
    expect(hub.log.filter(({ host }) => host === 'store').length).toBe(1)
    for (const { host, authorization } of hub.log)
      expect(authorization).toBe(host === 'hub' ? 'Bearer secret' : undefined)
  })
  test('takes no token out of the environment for another base', async () => {
    process.env.HF_TOKEN = 'secret'
    await readJson(open(), 'config.json')
    delete process.env.HF_TOKEN
    expect(hub.log.map(({ authorization }) => authorization)).toEqual([undefined, undefined])
  })
})

describe('a transfer', () => {
  test('that is cut goes on at the byte where it was cut', async () => {
    let cuts = 0
    hub.fault = (asked, response, body) => asked.host === 'store' && cuts++ < 2 && cut(asked, response, body, 1_000_000)
    await load()
    const last = large.length - 1
    const starts = hub.reads().filter((read) => read.startsWith('store'))
    expect(starts[0]).toBe(`store model.safetensors bytes=0-${last}`)
    expect(starts.length).toBe(3)
    const [second, third] = starts.slice(1).map((read) => Number(/bytes=(\d+)/.exec(read)![1]))
    expect(second).toBeGreaterThan(0)
    expect(third).toBeGreaterThan(second!)
    expect(third).toBeLessThanOrEqual(2_000_000)
  })
  test('that fails for good goes on at the next piece in the next load', async () => {
    hub.fault = (asked, response, body) => asked.host === 'store' && cut(asked, response, body, PIECE + 99)
    await expect(load(open({ retry: { times: 0, ms: 1 } }))).rejects.toEqual(fails('missing', /broke off at byte/))
    expect((await cache.list())[0]).toMatchObject({ complete: false })
    hub.fault = undefined
    hub.log.length = 0
    const seen: DownloadProgress[] = []
    await load(open({ onProgress: (p) => seen.push(p) }))
    expect(hub.reads()).toContain(`store model.safetensors bytes=${PIECE}-${large.length - 1}`)
    expect(seen[0]!.loadedBytes).toBeGreaterThan(0)
    expect((await cache.list())[0]).toMatchObject({ complete: true })
  })
  test('that stands still is taken up again', async () => {
    let stops = 0
    hub.fault = ({ host }, response, body) => {
      if (host !== 'store' || stops++ > 0) return false
      response.writeHead(206, { 'content-range': `bytes 0-${body.length - 1}/${body.length}` })
      response.write(body.subarray(0, 1000)) // and nothing more
      return true
    }
    await load(open({ stallMs: 300 }))
    expect(hub.reads()).toContain(`store model.safetensors bytes=1000-${large.length - 1}`)
  })
  test('is repeated when the server is busy, after as long as it asks for', async () => {
    const times: number[] = []
    hub.fault = ({ host }, response) => {
      if (host === 'store') times.push(performance.now())
      if (host !== 'store' || times.length > 2) return false
      response.writeHead(times.length === 1 ? 429 : 503, times.length === 1 ? { 'retry-after': '1' } : {}).end()
      return true
    }
    await load()
    expect(times.length).toBe(3)
    expect(times[1]! - times[0]!).toBeGreaterThan(990)
  })
  test('is given up when the server asks for more patience than is sensible, or is never well', async () => {
    hub.fault = (_, response) => Boolean(response.writeHead(429, { 'retry-after': '3600' }).end())
    await expect(load()).rejects.toEqual(fails('missing', /answers 429 .*try again in 3600 s/))
    expect(hub.log.length).toBe(1)
    hub.fault = (_, response) => Boolean(response.writeHead(503).end())
    await expect(load()).rejects.toEqual(fails('missing', /answers 503/))
    expect(hub.log.length).toBe(1 + 3)
  })
  test('with wrong bytes is found by its hash and made anew', async () => {
    let served = 0
    hub.fault = ({ host, method, range }, response, body) => {
      if (host !== 'store' || served++ > 0) return false
      const wrong = body.slice()
      wrong[PIECE + 7]! ^= 1
      serve(method, range, response, wrong)
      return true
    }
    await load()
    expect(served).toBe(2)
    expect(Buffer.compare(await readWhole(open(), 'model.safetensors'), large)).toBe(0)
  })
  test('with wrong bytes always is an error, and nothing of it is used', async () => {
    hub.fault = ({ host, method, range }, response, body) => {
      if (host === 'store') serve(method, range, response, noise(body.length, 2))
      return host === 'store'
    }
    await expect(load()).rejects.toEqual(fails('format', /model\.safetensors: has sha256 \w{64}, expected \w{64}/))
    hub.fault = undefined
    await load()
  })
  test('is aborted with the reason of the signal, and goes on later', async () => {
    const controller = new AbortController()
    const reason = new Error('enough')
    hub.fault = (asked, response, body) => {
      if (asked.host !== 'store') return false
      response.writeHead(206, { 'content-range': `bytes 0-${body.length - 1}/${body.length}` })
      response.write(body.subarray(0, PIECE + 1), () => setTimeout(() => controller.abort(reason), 300))
      return true
    }
    await expect(load(open(), controller.signal)).rejects.toBe(reason)
    hub.fault = undefined
    hub.log.length = 0
    await load()
    expect(hub.reads()).toContain(`store model.safetensors bytes=${PIECE}-${large.length - 1}`)
  })
  test('tells how it goes', async () => {
    const seen: DownloadProgress[] = []
    await load(open({ onProgress: (p) => seen.push(p) }))
    const loaded = seen.map((p) => p.loadedBytes)
    expect(loaded).toEqual(loaded.toSorted((a, b) => a - b))
    expect(seen.at(-1)).toMatchObject({
      file: 'model.safetensors',
      loadedBytes: large.length,
      totalBytes: large.length,
    })
    expect(seen.at(-1)!.bytesPerSecond).toBeGreaterThan(0)
    expect(seen.at(-1)!.secondsLeft).toBe(0)
  })
  test('that has no room is refused before it begins, with the numbers', async () => {
    const store = { ...(await cache.store()), room: async () => 70e6 }
    const source = open({ cache: { ...cache, store: async () => store } })
    const error = fails('space', /^hf:me\/it: needs 33\.6 MB more in the cache, .* has 70\.0 MB left/)
    await expect(source.prepare!(['model.safetensors'])).rejects.toEqual(error)
    expect(hub.reads()).toEqual([])
  })
  test('is made once for two who want it at once', async () => {
    await Promise.all([load(), load(open({ cache: openCache({ folder }) }))])
    expect(hub.reads().filter((read) => read.startsWith('store')).length).toBe(1)
  })
})

describe('what lies in the cache', () => {
  const damages: [string, (file: string) => Promise<void>][] = [
    ['changed', async (file) => writeFile(file, (await readFile(file)).fill(7, 5, 9))],
    ['cut', (file) => truncate(file, 1000)],
    ['removed', (file) => rm(file)],
  ]
  test.each(damages)('and is %s is found and mended, a piece alone', async (_, damage) => {
    await load()
    await damage(await pieceFile(1))
    hub.log.length = 0
    expect(Buffer.compare(await readWhole(open(), 'model.safetensors'), large)).toBe(0)
    expect(hub.reads()).toContain(`store model.safetensors bytes=${PIECE}-${2 * PIECE - 1}`)
    await expect(open({ offline: true }).read('sub/x.bin', 0, 1)).rejects.toEqual(fails('missing', /in the cache/))
  })
  test('and is changed without a network is an error', async () => {
    await load()
    await truncate(await pieceFile(1), 1000)
    await expect(load(open({ offline: true }))).rejects.toEqual(
      fails('missing', /has no model\.safetensors in the cache/),
    )
  })
  test('and is removed while it is in use is brought again', async () => {
    const source = open()
    await load(source)
    await cache.remove('hf:me/it')
    await load(source)
  })
  test('is listed and removed', async () => {
    await load()
    await readJson(plain(), 'config.json')
    const listed = await cache.list()
    expect(listed.map(({ name, files, complete }) => ({ name, files, complete }))).toEqual([
      { name: `hf:me/it@${'c'.repeat(40)}`, files: 1, complete: true },
      { name: `${hub.base}/plain`, files: 1, complete: true },
    ])
    expect(listed[0]!.bytes).toBeGreaterThan(large.length)
    expect(await cache.remove('hf:me/it')).toBe(listed[0]!.bytes)
    await expect(stat(await pieceFile(0))).rejects.toThrow()
    await expect(cache.remove('hf:me/it')).rejects.toEqual(fails('missing', /cache: has no hf:me\/it/))
    await cache.remove(`${hub.base}/plain`)
    expect(await cache.list()).toEqual([])
    expect(await cache.path()).toBe(folder)
  })
})

describe('a plain server', () => {
  test('is asked whether a file has changed, and done without when it is away', async () => {
    await load(plain())
    expect(await plain().size('nothing.json')).toBeUndefined()
    hub.log.length = 0
    await load(plain())
    expect(hub.reads()).toEqual([])
    expect(hub.log.map(({ method }) => method)).toEqual(['HEAD'])
    hub.fault = (_, response) => Boolean(response.destroy())
    await load(plain())
    expect(await plain().size('nothing.json')).toBeUndefined()
    await expect(plain().size('other.json')).rejects.toMatchObject(missing)
    await expect(plain({ offline: true }).size('other.json')).rejects.toEqual(fails('missing', /in the cache/))
    await load(plain({ offline: true }))
  })
  test('gives the new file where it changed', async () => {
    await load(plain())
    hub.files.set('model.safetensors', noise(5000, 3))
    expect(await readWhole(plain(), 'model.safetensors')).toEqual(noise(5000, 3))
  })
  test('that changes a file in the middle of it is begun with anew', async () => {
    const changed = noise(large.length, 4)
    let reads = 0
    hub.fault = (asked, response, body) => {
      if (asked.method !== 'GET' || reads++ > 0) return false
      response.setHeader('etag', '"first"')
      hub.files.set('model.safetensors', changed)
      return cut(asked, response, body, PIECE + 5)
    }
    expect(Buffer.compare(await readWhole(plain(), 'model.safetensors'), changed)).toBe(0)
  })
  test('without Range gives large files too, and is listened to again where it was cut', async () => {
    const huge = noise(65 * 2 ** 20)
    hub.files.set('huge.bin', huge)
    hub.ranges = false
    let cuts = 0
    hub.fault = ({ method }, response, body) => {
      if (method !== 'GET' || cuts++ !== 1) return false
      response.writeHead(200, { 'content-length': body.length })
      response.write(body.subarray(0, PIECE + 5), () => response.destroy())
      return true
    }
    const source = plain()
    expect(await source.read('huge.bin', PIECE, PIECE + 100)).toEqual(huge.slice(PIECE, PIECE + 100))
    expect(cuts).toBe(3)
    expect(Buffer.compare(await readWhole(source, 'huge.bin'), huge)).toBe(0)
    await expect(openSource(`${hub.base}/plain`).read('huge.bin', 0, 9)).rejects.toEqual(fails('unsupported', /Range/))
  })
  test('whose file became shorter says so', async () => {
    hub.fault = ({ method, range }, response, body) => {
      if (method !== 'GET') return false
      serve(method, range?.replace(/0-/, '20000000-'), response, body.subarray(0, 1000))
      return true
    }
    await expect(load(plain())).rejects.toEqual(fails('missing', /ends at 1000, before byte/))
  })
})

test('offline and without a cache there is nothing to read', () => {
  expect(() => open({ cache: false, offline: true })).toThrow(/has offline and no cache/)
})
