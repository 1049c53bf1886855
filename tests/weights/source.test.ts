import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { knownModels } from '../../src/weights/known_models.ts'
import { openCheckpoint } from '../../src/weights/safetensors.ts'
import { openSource, readFile, readJson, readText, type Source } from '../../src/weights/source.ts'
import { blob, f32, safetensors } from './build.ts'

const data = Uint8Array.from({ length: 1000 }, (_, i) => i % 251)
const model = safetensors([f32('w', [3], [1, 2, 3])])
const once = { retry: { times: 0, ms: 1 } }
const missing = { name: 'WeightsError', code: 'missing' }

/** What every source does, whatever it reads from. It holds data.bin, sub/data.bin, bad.json and model.safetensors. */
function behaves(open: () => Source): void {
  test('tells sizes', async () => {
    const source = open()
    expect(await source.size('data.bin')).toBe(1000)
    expect(await source.size('sub/data.bin')).toBe(1000)
    expect(await source.size('nothing.bin')).toBeUndefined()
  })
  test('reads ranges', async () => {
    const source = open()
    expect(await source.read('data.bin', 0, 1)).toEqual(data.slice(0, 1))
    expect(await source.read('data.bin', 500, 1000)).toEqual(data.slice(500))
    expect(await source.read('data.bin', 7, 7)).toEqual(new Uint8Array(0))
    expect(await readFile(source, 'sub/data.bin')).toEqual(data)
  })
  test('a range beyond the end is missing', async () => {
    await expect(open().read('data.bin', 990, 1001)).rejects.toMatchObject(missing)
    await expect(open().read('data.bin', 2000, 2001)).rejects.toMatchObject(missing)
  })
  test('a file that is not there is missing, and named', async () => {
    await expect(open().read('nothing.bin', 0, 1)).rejects.toMatchObject(missing)
    await expect(readFile(open(), 'nothing.json')).rejects.toThrow(/nothing\.json/)
  })
  test('text and JSON that are none name the file', async () => {
    await expect(readJson(open(), 'bad.json')).rejects.toThrow(/bad\.json: is not JSON/)
    await expect(readText(open(), 'data.bin')).rejects.toMatchObject({ name: 'WeightsError', code: 'format' })
  })
  test('opens a checkpoint', async () => {
    expect([...(await openCheckpoint(open())).tensors.keys()]).toEqual(['w'])
  })
  test('an aborted signal throws its own reason', async () => {
    const reason = new Error('enough')
    const signal = AbortSignal.abort(reason)
    await expect(open().size('data.bin', signal)).rejects.toBe(reason)
    await expect(open().read('data.bin', 0, 10, signal)).rejects.toBe(reason)
    await expect(openCheckpoint(open(), { signal })).rejects.toBe(reason)
  })
}

const files: Record<string, Uint8Array<ArrayBuffer> | string> = {
  'data.bin': data,
  'sub/data.bin': data,
  'bad.json': '{"a":',
  'model.safetensors': model,
}

describe('Blobs', () => {
  behaves(() => openSource(Object.fromEntries(Object.entries(files).map(([path, bytes]) => [path, blob(bytes)]))))
})

describe('Files of a dropped folder', () => {
  const dropped = Object.entries(files).map(([path, bytes]) => {
    const file = new File([bytes], path.split('/').at(-1)!)
    return Object.defineProperty(file, 'webkitRelativePath', { value: `my model/${path}` })
  })
  behaves(() => openSource(dropped))
  test('Files without a folder go by their names', async () => {
    expect(await openSource([new File(['{}'], 'config.json')]).size('config.json')).toBe(2)
  })
})

describe('a folder', () => {
  let folder = ''
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'pronounce-'))
    const { mkdir } = await import('node:fs/promises')
    await mkdir(join(folder, 'sub'))
    for (const [path, bytes] of Object.entries(files)) await writeFile(join(folder, path), bytes)
  })
  afterAll(() => rm(folder, { recursive: true }))

  describe('by path', () => behaves(() => openSource(folder)))
  describe('by URL', () => behaves(() => openSource(pathToFileURL(folder))))
  describe('by the text of a URL', () => behaves(() => openSource(pathToFileURL(folder).href)))

  test('that does not exist is said to', async () => {
    const source = openSource(join(folder, 'nowhere'))
    await expect(openCheckpoint(source)).rejects.toThrow(/nowhere: there is no such folder/)
    await expect(openCheckpoint(source)).rejects.toMatchObject(missing)
    await expect(openSource(join(folder, 'data.bin')).size('x')).rejects.toThrow(/is not a folder/)
  })
  test('a folder is no file', async () => {
    expect(await openSource(folder).size('sub')).toBeUndefined()
  })
})

type Answer = (request: IncomingMessage, response: ServerResponse, body: Uint8Array) => void
let answer: Answer
let log: string[] = []
let server: Server
let base = ''

/** As a static file server: Range, HEAD, Content-Length. */
const ranged: Answer = (request, response, body) => {
  const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? []
  if (from === undefined) {
    response.writeHead(200, { 'content-length': body.length }).end(request.method === 'HEAD' ? undefined : body)
    return
  }
  if (Number(from) >= body.length) {
    response.writeHead(416, { 'content-range': `bytes */${body.length}` }).end()
    return
  }
  const part = body.subarray(Number(from), Number(to) + 1)
  const range = `bytes ${from}-${Number(from) + part.length - 1}/${body.length}`
  response.writeHead(206, { 'content-range': range, 'content-length': part.length }).end(part)
}
const rangeless: Answer = (request, response, body) => {
  response.writeHead(200, { 'content-length': body.length }).end(request.method === 'HEAD' ? undefined : body)
}
const always =
  (status: number, headers = {}): Answer =>
  (_, response) => {
    response.writeHead(status, headers).end()
  }

beforeAll(async () => {
  server = createServer((request, response) => {
    log.push(`${request.method} ${request.url} ${request.headers.range ?? ''}`.trim())
    const path = decodeURIComponent(request.url!.replace(/^\/(model|hub\/me\/it\/resolve\/[^/]+)\//, ''))
    const body = files[path]
    if (body === undefined) response.writeHead(404).end()
    else answer(request, response, typeof body === 'string' ? new TextEncoder().encode(body) : body)
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})
const serve =
  (how: Answer): (() => Source) =>
  () => {
    answer = how
    log = []
    return openSource(`${base}/model`, { retry: { times: 2, ms: 1 } })
  }

describe('http', () => {
  describe('with Range', () => behaves(serve(ranged)))
  describe('without Range', () => behaves(serve(rangeless)))
  describe('without HEAD', () =>
    behaves(serve((q, r, body) => (q.method === 'HEAD' ? always(405)(q, r, body) : ranged(q, r, body)))))
  describe('without HEAD and Range', () =>
    behaves(serve((q, r, body) => (q.method === 'HEAD' ? always(501)(q, r, body) : rangeless(q, r, body)))))
  describe('without any length', () =>
    behaves(
      serve((_, r, body) => {
        r.writeHead(200).write(body.subarray(0, 5))
        r.end(body.subarray(5))
      }),
    ))
  describe('with the length of a compressed HEAD', () =>
    behaves(
      serve((q, r, body) => {
        if (q.method === 'HEAD') r.writeHead(200, { 'content-length': 3, 'content-encoding': 'gzip' }).end()
        else ranged(q, r, body)
      }),
    ))

  test('asks for the range only', async () => {
    await serve(ranged)().read('data.bin', 10, 20)
    expect(log).toEqual(['GET /model/data.bin bytes=10-19'])
  })
  test('asks a server without Range once for a file', async () => {
    const source = serve(rangeless)()
    await source.read('data.bin', 10, 20)
    expect(await source.read('data.bin', 20, 30)).toEqual(data.slice(20, 30))
    expect(log).toEqual(['GET /model/data.bin bytes=10-19'])
  })
  test('a file over 64 MiB needs Range', async () => {
    const huge: Answer = (_, response) => {
      response.writeHead(200, { 'content-length': 2 ** 30 }).write(new Uint8Array(10))
    }
    const failed = serve(huge)().read('data.bin', 0, 10)
    await expect(failed).rejects.toThrow(/ignores Range and the file is over 64 MiB/)
    const endless: Answer = (_, response) => {
      const write = (): void => {
        while (!response.destroyed && response.write(new Uint8Array(2 ** 20)));
        response.once('drain', write)
      }
      write()
    }
    await expect(serve(endless)().read('data.bin', 0, 10)).rejects.toMatchObject({ code: 'unsupported' })
  })
  test.each([401, 403, 404, 500, 503])('status %i is in the message, with the URL', async (status) => {
    const source = serve(always(status))()
    await expect(source.read('data.bin', 0, 10)).rejects.toMatchObject(missing)
    await expect(source.read('data.bin', 0, 10)).rejects.toThrow(`${base}/model/data.bin: the server answers ${status}`)
    if (status === 404) expect(await source.size('data.bin')).toBeUndefined()
    else await expect(source.size('data.bin')).rejects.toThrow(`the server answers ${status}`)
  })
  test('a transfer that breaks off is taken up where it broke, and given up in the end', async () => {
    const breaking =
      (most: number): Answer =>
      (request, response, body) => {
        const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range!)!
        const length = Number(to) + 1 - Number(from)
        const range = `bytes ${from}-${to}/1000`
        response.writeHead(206, { 'content-range': range, 'content-length': length })
        response.write(body.subarray(Number(from), Number(from) + Math.min(length, most)), () => response.destroy())
      }
    expect(await serve(breaking(4))().read('data.bin', 0, 10)).toEqual(data.slice(0, 10))
    expect(log.map((line) => line.replace('GET /model/data.bin ', ''))).toEqual(['bytes=0-9', 'bytes=4-9', 'bytes=8-9'])
    await expect(serve(breaking(0))().read('data.bin', 0, 10)).rejects.toMatchObject(missing)
    await expect(serve(breaking(0))().read('data.bin', 0, 10)).rejects.toThrow(/broke off at byte 0, before byte 10/)
    expect(log.length).toBe(1 + 2)
    const ended: Answer = (_, response) => {
      response.writeHead(206, { 'content-range': 'bytes 0-3/4' }).end(new Uint8Array(4))
    }
    await expect(serve(ended)().read('data.bin', 0, 10)).rejects.toThrow(/ends at 4, before byte 10/)
  })
  test('another range than the one asked for', async () => {
    const other = always(206, { 'content-range': 'bytes 5-14/1000' })
    await expect(serve(other)().read('data.bin', 0, 10)).rejects.toThrow(/sent bytes from 5, expected from 0/)
  })
  test('a page instead of a file is no file', async () => {
    const page: Answer = (_, response) => {
      response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html>')
    }
    expect(await serve(page)().size('data.bin')).toBeUndefined()
    await expect(openCheckpoint(serve(page)())).rejects.toMatchObject(missing)
  })
  test('nobody there', async () => {
    const source = openSource('http://127.0.0.1:1/', once)
    await expect(source.size('x')).rejects.toMatchObject(missing)
    await expect(source.size('x')).rejects.toThrow(/cannot be reached/)
  })
  test('a transfer is aborted with the reason of the signal', async () => {
    const reason = new Error('enough')
    const controller = new AbortController()
    const slow: Answer = (_, response) => {
      response.writeHead(206, { 'content-range': 'bytes 0-9/1000' }).write(new Uint8Array(4))
      setTimeout(() => controller.abort(reason), 20)
    }
    await expect(serve(slow)().read('data.bin', 0, 10, controller.signal)).rejects.toBe(reason)
    const silent: Answer = () => setTimeout(() => other.abort(reason), 20)
    const other = new AbortController()
    await expect(serve(silent)().size('data.bin', other.signal)).rejects.toBe(reason)
  })
  test('headers and fetch of the caller', async () => {
    answer = ranged
    const seen: string[] = []
    const spy: typeof fetch = (url, init) => {
      seen.push(new Headers(init?.headers).get('authorization') ?? '')
      return fetch(url, init)
    }
    const source = openSource(new URL(`${base}/model/`), { fetch: spy, headers: { authorization: 'Bearer x' } })
    expect(await source.size('data.bin')).toBe(1000)
    expect(seen).toEqual(['Bearer x'])
  })
  test('an hf: name is a URL of the hub', async () => {
    answer = ranged
    log = []
    const hub = `${base}/hub`
    expect(await openSource('hf:me/it', { base: hub }).size('data.bin')).toBe(1000)
    expect(await openSource('hf:me/it@refs/pr/1', { base: `${hub}/` }).size('sub/data.bin')).toBe(1000)
    expect(log).toEqual(['HEAD /hub/me/it/resolve/main/data.bin', 'HEAD /hub/me/it/resolve/refs%2Fpr%2F1/sub/data.bin'])
    expect(openSource('hf:me/it@v1').name).toBe('hf:me/it@v1')
  })
  test.each(knownModels)('$name is a model of the hub', async ({ name, revision, bytes, deviceBytes }) => {
    answer = always(404)
    log = []
    expect(await openSource(name, { base: `${base}/hub`, ...once }).size('x')).toBeUndefined()
    expect(log).toEqual([`HEAD /hub/${name.slice(3)}/resolve/${revision}/x`])
    expect(deviceBytes).toBeLessThanOrEqual(bytes)
  })
  test.each(['hf:', 'hf:me', 'hf:me/it/more', 'hf:me/it@', 'hf:../..'])('%s is no model', (name) => {
    expect(() => openSource(name)).toThrow(/is not the name of a model/)
  })
  test('a path in a browser is relative to the page', async () => {
    answer = ranged
    log = []
    vi.stubGlobal('process', undefined)
    vi.stubGlobal('location', { href: `${base}/model/page.html` })
    const sources = ['sub', '/model', './'].map((where) => openSource(where))
    const local = () => openSource('file:///models/x')
    expect(local).toThrow(/a disk that a browser cannot read/)
    vi.unstubAllGlobals()
    for (const source of sources) await source.size('data.bin')
    expect(log).toEqual(['HEAD /model/sub/data.bin', 'HEAD /model/data.bin', 'HEAD /model/data.bin'])
  })
})

test('a source is itself', () => {
  const source = openSource('public/models/decider-nano')
  expect(openSource(source)).toBe(source)
})

test.each([
  ['', 'missing'],
  [undefined, 'missing'],
  ['http://', 'format'],
  ['https://host/folder?token=1', 'unsupported'],
  ['ftp://host/folder', 'unsupported'],
])('%j is no place for a model', (where, code) => {
  expect(() => openSource(where as string)).toThrow(expect.objectContaining({ name: 'WeightsError', code }))
})
