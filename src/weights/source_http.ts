import { WeightsError } from '../errors.ts'
import type { Source } from './source.ts'

export interface HttpOptions {
  readonly fetch?: typeof fetch
  /** For example an Authorization of a private model. */
  readonly headers?: HeadersInit
}

/** Largest file that is taken whole from a server that ignores Range. */
const wholeLimit = 64 * 2 ** 20

/** Files below a URL, read by Range requests. */
export function httpSource(name: string, base: URL, { fetch = globalThis.fetch, headers }: HttpOptions): Source {
  const root = base.href.replace(/\/*$/, '/')
  const urlOf = (path: string): string => new URL(path.split('/').map(encodeURIComponent).join('/'), root).href
  /** The last file that came whole, so that a server without Range is asked for it once. */
  let whole: { readonly path: string; readonly bytes: Uint8Array } | undefined

  async function request(method: string, path: string, range: string | undefined, signal: AbortSignal | undefined) {
    signal?.throwIfAborted()
    const all = new Headers(headers)
    // compressed bodies have other offsets and lengths; browsers set this one themselves where there is a Range
    all.set('accept-encoding', 'identity')
    if (range !== undefined) all.set('range', range)
    const url = urlOf(path)
    return fetch(url, { method, headers: all, signal: signal ?? null }).catch((cause: Error) => {
      signal?.throwIfAborted()
      throw new WeightsError('missing', `${url}: cannot be reached: ${cause.message}; check the network`, { cause })
    })
  }

  async function size(path: string, signal?: AbortSignal): Promise<number | undefined> {
    if (whole?.path === path) return whole.bytes.length
    const head = await request('HEAD', path, undefined, signal)
    if (isMissing(head)) return undefined
    const known = head.ok ? lengthOf(head) : undefined
    if (known !== undefined) return known
    // HEAD is refused, or says no length: the reply to a range of one byte has the length of the file
    const one = await request('GET', path, 'bytes=0-0', signal)
    const total = /\/(\d+)$/.exec(one.headers.get('content-range') ?? '')?.[1]
    const length = one.status === 200 ? lengthOf(one) : total && Number(total)
    if (isMissing(one) || typeof length === 'number') {
      await one.body?.cancel()
      return isMissing(one) ? undefined : (length as number)
    }
    if (one.status !== 200) throw await refused(one)
    return (await takeWhole(path, one, signal)).length
  }

  async function read(path: string, start: number, end: number, signal?: AbortSignal): Promise<Uint8Array> {
    signal?.throwIfAborted()
    if (start === end) return new Uint8Array(0)
    if (whole?.path === path) return part(whole.bytes)
    const response = await request('GET', path, `bytes=${start}-${end - 1}`, signal)
    if (response.status === 416) throw tooShort(`before byte ${end}`)
    if (response.status === 200) return part(await takeWhole(path, response, signal))
    if (response.status !== 206) throw await refused(response)
    const from = /^bytes (\d+)-/.exec(response.headers.get('content-range') ?? '')?.[1]
    if (from !== undefined && Number(from) !== start) {
      await response.body?.cancel()
      throw new WeightsError('format', `${response.url}: sent bytes from ${from}, expected from ${start}`)
    }
    const bytes = await collect(response, end - start, signal)
    if (bytes.length < end - start) throw tooShort(`at ${start + bytes.length}, before byte ${end}`)
    return bytes

    function part(bytes: Uint8Array): Uint8Array {
      if (bytes.length < end) throw tooShort(`at ${bytes.length}, before byte ${end}`)
      return bytes.slice(start, end)
    }
    function tooShort(where: string): WeightsError {
      return new WeightsError('missing', `${urlOf(path)}: ends ${where}; the file or the transfer is incomplete`)
    }
  }

  async function takeWhole(path: string, response: Response, signal: AbortSignal | undefined): Promise<Uint8Array> {
    const length = lengthOf(response) ?? 0
    if (length > wholeLimit) {
      await response.body?.cancel()
      throw tooLarge(response.url)
    }
    const bytes = await collect(response, wholeLimit + 1, signal)
    if (bytes.length > wholeLimit) throw tooLarge(response.url)
    if (bytes.length < length) {
      throw new WeightsError(
        'missing',
        `${response.url}: sent ${bytes.length} bytes, expected ${length}; load it again`,
      )
    }
    whole = { path, bytes }
    return bytes
  }

  return { name, remote: true, size, read }
}

/** Not there. Development servers answer a path that is not there with the page itself. */
const isMissing = (r: Response): boolean =>
  r.status === 404 || (r.ok && r.headers.get('content-type')?.startsWith('text/html') === true)

/** Length of the file in a full reply; a compressed body's length says nothing. */
function lengthOf(r: Response): number | undefined {
  const length = r.headers.get('content-length')
  const encoding = r.headers.get('content-encoding') ?? 'identity'
  return length !== null && /^\d+$/.test(length) && encoding === 'identity' ? Number(length) : undefined
}

const tooLarge = (url: string): WeightsError =>
  new WeightsError(
    'unsupported',
    `${url}: the server ignores Range and the file is over 64 MiB; use a server that answers Range requests`,
  )

async function refused(response: Response): Promise<WeightsError> {
  await response.body?.cancel()
  const { status, url } = response
  const advice =
    status === 401 || status === 403
      ? 'pass an Authorization header, and check the name'
      : status === 404
        ? 'check the name'
        : 'try again later'
  return new WeightsError('missing', `${url}: the server answers ${status} ${response.statusText}; ${advice}`)
}

/** The body, of which at most `limit` bytes are taken. */
async function collect(response: Response, limit: number, signal: AbortSignal | undefined): Promise<Uint8Array> {
  const parts: Uint8Array[] = []
  let length = 0
  const reader = response.body?.getReader()
  try {
    while (reader && length < limit) {
      const { done, value } = await reader.read()
      if (done) break
      parts.push(value.subarray(0, limit - length))
      length += parts.at(-1)!.length
    }
  } catch (cause) {
    signal?.throwIfAborted()
    const message = `${response.url}: the transfer broke off after ${length} bytes; load it again`
    throw new WeightsError('missing', message, { cause })
  }
  await reader?.cancel().catch(() => {}) // what was asked for is here
  const bytes = new Uint8Array(length)
  let at = 0
  for (const part of parts) {
    bytes.set(part, at)
    at += part.length
  }
  return bytes
}
