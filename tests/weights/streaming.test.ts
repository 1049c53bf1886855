import { createReadStream } from 'node:fs'
import { mkdtemp, open, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { tensor } from '../../src/graph/tensor.ts'
import { canonicalName } from '../../src/models/qwen3_5/names.ts'
import { publishedConfig } from '../../src/models/qwen3_5/published.ts'
import { textWeights } from '../../src/models/qwen3_5/weights.ts'
import { openCache } from '../../src/weights/cache/cache.ts'
import { type WeightDevice, Weights } from '../../src/weights/load.ts'
import { openCheckpoint } from '../../src/weights/safetensors.ts'
import { openSource, type Source } from '../../src/weights/source.ts'
import { publishedFile } from '../models/qwen3_5/published.ts'

// A checkpoint of the shape of the 2B text model, 3.8 GB of zeros that take no room on the disk, over HTTP.

const MB = 1e6
const c = publishedConfig('2B')
const { head, bytes } = publishedFile(c)
const table = 2 * c.vocabulary * c.hidden

let folder = ''
let server: Server
let url = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pronounce-'))
  const path = join(folder, 'model.safetensors')
  const file = await open(path, 'w')
  await file.write(head)
  await file.truncate(bytes)
  await file.close()
  server = createServer(({ method, headers, url }, response) => {
    if (url !== '/model.safetensors') return void response.writeHead(404).end()
    const [, from = '0', to = `${bytes - 1}`] = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? '') ?? []
    const [start, end] = [Number(from), Number(to)]
    const range = { 'content-range': `bytes ${start}-${end}/${bytes}`, 'content-length': end + 1 - start }
    response.writeHead(headers.range ? 206 : 200, range)
    if (method === 'HEAD') response.end()
    else createReadStream(path, { start, end }).pipe(response)
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(async () => {
  server?.closeAllConnections()
  server?.close()
  await rm(folder, { recursive: true })
})

/** Streams the weights to a device that keeps none of them; the most that this process grew by meanwhile, in bytes. */
async function peakOf(source: Source): Promise<{ peak: number; written: number }> {
  const before = process.memoryUsage().rss
  let [peak, written] = [0, 0]
  const look = (): void => {
    peak = Math.max(peak, process.memoryUsage().rss - before)
  }
  const timer = setInterval(look, 20)
  const device: WeightDevice = {
    keep: (label, shape, format) => tensor({ label, shape, format, place: 'kept' }),
    write(_, data) {
      written += data.length
      look()
    },
    flush: async () => {},
    release() {},
  }
  try {
    const weights = new Weights(await openCheckpoint(source), device, { rename: canonicalName, format: () => 'f16' })
    textWeights(weights, c)
    await weights.stream()
    expect(written).toBe(weights.deviceBytes)
  } finally {
    clearInterval(timer)
  }
  return { peak, written }
}

describe.runIf(process.env.PRONOUNCE_FULL === '1')('3.8 GB stream through less than 300 MB of the host', () => {
  test('into the cache, and out of it', { timeout: 900_000 }, async () => {
    const cache = openCache({ folder: join(folder, 'cache') })
    const { peak } = await peakOf(openSource(url, { cache }))
    expect(peak / MB).toBeLessThan(300)
    expect((await peakOf(openSource(url, { cache, offline: true }))).peak / MB).toBeLessThan(300)
    expect((await cache.list())[0]).toMatchObject({ complete: true })
  })
  test('past the cache, beside the embedding that stays in memory', { timeout: 900_000 }, async () => {
    const { peak } = await peakOf(openSource(url))
    expect((peak - table) / MB).toBeLessThan(300)
    expect(peak).toBeGreaterThan(table / 2)
  })
})
