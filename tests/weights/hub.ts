import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Asked {
  readonly host: 'hub' | 'store'
  readonly method: string
  readonly path: string
  readonly range: string | undefined
  readonly authorization: string | undefined
}

/** Answers a request instead of the hub: true if it did. Called for the store too. */
export type Fault = (asked: Asked, response: ServerResponse, body: Uint8Array) => boolean

/**
 * Plays huggingface.co for the model me/it: a listing with hashes, small files, and large ones (from 1 kB) that are
 * redirected to a store on another origin, whose ETags are not those hashes. Below /plain/ it is a server of files.
 */
export interface Hub {
  readonly base: string
  readonly files: Map<string, Uint8Array>
  commit: string
  listing: boolean
  ranges: boolean
  fault: Fault | undefined
  readonly log: Asked[]
  /** GETs of bytes, as 'path range'. */
  reads(): string[]
  close(): Promise<void>
}

export const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/** Bytes that do not repeat, the same for the same seed. */
export function noise(length: number, seed = 1): Uint8Array<ArrayBuffer> {
  const words = new Uint32Array(Math.ceil(length / 4))
  let x = seed
  for (let i = 0; i < words.length; i++) {
    x ^= x << 13
    x ^= x >>> 17
    x ^= x << 5
    words[i] = x
  }
  return new Uint8Array(words.buffer, 0, length)
}

const open = {
  'access-control-allow-origin': '*',
  'access-control-allow-headers': 'authorization, range',
  'access-control-expose-headers': 'etag, content-range, x-repo-commit',
}

export async function startHub(files: Record<string, Uint8Array>): Promise<Hub> {
  const list = new Map(Object.entries(files))
  const store = createServer((request, response) => handle('store', request, response))
  const server = createServer((request, response) => handle('hub', request, response))
  const [base, elsewhere] = await Promise.all([listen(server), listen(store)])
  const hub: Hub = {
    ...{ base, files: list, commit: 'c'.repeat(40), listing: true, ranges: true, fault: undefined, log: [] },
    reads: () => hub.log.filter((a) => a.method === 'GET' && !a.path.includes('/api/')).map(readOf),
    close: async () => {
      for (const s of [server, store]) {
        s.closeAllConnections()
        await new Promise((closed) => s.close(closed))
      }
    },
  }
  const readOf = ({ host, path, range = 'whole' }: Asked) => `${host} ${path.split('/').at(-1)} ${range}`

  function handle(host: 'hub' | 'store', request: IncomingMessage, response: ServerResponse): void {
    const { method = '', headers } = request
    for (const [name, value] of Object.entries(open)) response.setHeader(name, value)
    if (method === 'OPTIONS') return void response.writeHead(204).end()
    const path = decodeURIComponent(new URL(request.url!, base).pathname)
    const asked = { host, method, path, range: headers.range, authorization: headers.authorization }
    hub.log.push(asked)
    const [, repository, revision, file = ''] =
      /^\/(?:api\/models\/)?(plain|me\/it)(?:\/(?:resolve|revision)\/([^/]+))?\/?(.*)$/.exec(path) ?? []
    const body = list.get(file) ?? new Uint8Array()
    if (hub.fault?.(asked, response, body)) return
    const known = repository === 'plain' || ['main', hub.commit].includes(revision ?? '')
    if (!known) return void response.writeHead(404).end()
    if (path.startsWith('/api/')) {
      if (!hub.listing) return void response.writeHead(404).end()
      return void response.setHeader('content-type', 'application/json').end(JSON.stringify(listing()))
    }
    if (!list.has(file)) return void response.writeHead(404).end()
    if (repository !== 'plain' && host === 'hub') {
      response.setHeader('x-repo-commit', hub.commit)
      if (body.length >= 1000)
        return void response
          .writeHead(302, { location: `${elsewhere}${request.url}`, 'x-linked-etag': sha256(body) })
          .end()
    }
    response.setHeader('etag', `"${sha256(Buffer.from(sha256(body)))}"`)
    serve(method, headers.range, response, body, hub.ranges)
  }

  const listing = () => ({
    sha: hub.commit,
    siblings: [...list].map(([rfilename, bytes]) => ({
      ...{ rfilename, size: bytes.length, blobId: '0'.repeat(40) },
      ...(bytes.length >= 1000 && { lfs: { sha256: sha256(bytes), size: bytes.length, pointerSize: 134 } }),
    })),
  })
  return hub
}

/** As a static file server: Range, HEAD, Content-Length. */
export function serve(
  method: string,
  range: string | undefined,
  response: ServerResponse,
  body: Uint8Array,
  ranges = true,
): void {
  const [, from, to] = (ranges && /^bytes=(\d+)-(\d+)$/.exec(range ?? '')) || []
  if (from === undefined)
    return void response.writeHead(200, { 'content-length': body.length }).end(method === 'HEAD' ? undefined : body)
  if (Number(from) >= body.length)
    return void response.writeHead(416, { 'content-range': `bytes */${body.length}` }).end()
  const part = body.subarray(Number(from), Number(to) + 1)
  const last = Number(from) + part.length - 1
  response.writeHead(206, {
    'content-range': `bytes ${from}-${last}/${body.length}`,
    'content-length': part.length,
  })
  response.end(part)
}

/** Sends a part of what was asked for, and hangs up. */
export function cut(asked: Asked, response: ServerResponse, body: Uint8Array, bytes: number): true {
  const [, from = '0', to = `${body.length - 1}`] = /^bytes=(\d+)-(\d+)$/.exec(asked.range ?? '') ?? []
  const range = `bytes ${from}-${to}/${body.length}`
  response.writeHead(206, { 'content-range': range, 'content-length': Number(to) - Number(from) + 1 })
  response.write(body.subarray(Number(from), Number(from) + bytes), () => response.destroy())
  return true
}

async function listen(server: Server): Promise<string> {
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
