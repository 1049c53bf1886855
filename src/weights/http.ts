import { WeightsError } from '../errors.ts'

export interface HttpOptions {
  readonly fetch?: typeof fetch
  /** For example an Authorization, which is not sent on when a server redirects to another origin. */
  readonly headers?: HeadersInit
  /** Most repetitions of a request that fails or breaks off, and the milliseconds before the first; they double. */
  readonly retry?: { readonly times: number; readonly ms: number }
  /** A transfer without a byte for so long counts as broken off. Default: a minute. */
  readonly stallMs?: number
}

export interface Http {
  /** A reply of the server, whatever its status; what is worth repeating (429, 5xx, no reply) has been repeated. */
  request(method: string, url: string, range: string | undefined, signal: AbortSignal | undefined): Promise<Response>
  /** The pieces of a body as they come; throws where it breaks off or stands still. What is not taken is cancelled. */
  body(reply: Response): AsyncGenerator<Uint8Array>
  /** Waits before the `attempt`th repetition, from 0 on; false when there have been enough. */
  again(attempt: number, signal: AbortSignal | undefined): Promise<boolean>
}

/** Replies after which the same request may succeed. */
const passing: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504])
/** Longest Retry-After that is waited for; beyond it a person should know. */
const patienceMs = 120_000
const longestMs = 30_000

/** Requests that are repeated with growing pauses, or after as long as the server asks for. */
export function createHttp({
  fetch = globalThis.fetch,
  headers,
  retry = { times: 6, ms: 500 },
  stallMs = 60_000,
}: HttpOptions): Http {
  let reached = false // a server that never answered is not there, or the network is off: repeated once

  const pauseMs = (attempt: number): number => Math.min(longestMs, retry.ms * 2 ** attempt) * (0.75 + Math.random() / 4) // clients that failed together come apart

  async function once(method: string, url: string, range: string | undefined, signal: AbortSignal | undefined) {
    const all = new Headers(headers)
    // compressed bodies have other offsets and lengths; browsers set this one themselves where there is a Range
    all.set('accept-encoding', 'identity')
    if (range !== undefined) all.set('range', range)
    // what is kept is kept by us: no second copy in the browser's cache, and no damaged one out of it
    const reply = await fetch(url, { method, headers: all, cache: 'no-store', signal: signal ?? null })
    reached = true
    return reply
  }

  async function request(method: string, url: string, range: string | undefined, signal: AbortSignal | undefined) {
    for (let attempt = 0; ; attempt++) {
      signal?.throwIfAborted()
      const last = attempt >= retry.times
      const reply = await once(method, url, range, signal).catch((cause: Error) => {
        signal?.throwIfAborted()
        if (!last && (reached || attempt === 0)) return undefined
        throw new WeightsError('missing', `${url}: cannot be reached: ${reason(cause)}; check the network`, { cause })
      })
      if (reply && (last || !passing.has(reply.status))) return reply
      const asked = reply && retryAfterMs(reply)
      if (asked !== undefined && asked > patienceMs) return reply!
      await reply?.body?.cancel()
      await sleep(Math.max(asked ?? 0, pauseMs(attempt)), signal)
    }
  }

  async function* body(reply: Response): AsyncGenerator<Uint8Array> {
    const reader = reply.body?.getReader()
    let stalled = false
    const stop = (): void => {
      stalled = true
      reader?.cancel().catch(() => {}) // which ends the read below
    }
    try {
      for (;;) {
        const timer = setTimeout(stop, stallMs)
        const { done, value } = (await reader?.read().finally(() => clearTimeout(timer))) ?? { done: true }
        if (stalled) throw new Error(`no byte came for ${stallMs / 1000} s`)
        if (done || !value) return
        yield value
      }
    } finally {
      await reader?.cancel().catch(() => {})
    }
  }

  return {
    request,
    body,
    async again(attempt, signal) {
      if (attempt >= retry.times) return false
      await sleep(pauseMs(attempt), signal)
      return true
    },
  }
}

/** Node says the reason one level down: 'fetch failed', because of ECONNREFUSED. */
const reason = ({ message, cause }: Error): string =>
  cause instanceof Error && cause.message ? `${message}, ${cause.message}` : message

/** Retry-After is a number of seconds or a date. https://www.rfc-editor.org/rfc/rfc9110#field.retry-after */
function retryAfterMs(reply: Response): number | undefined {
  const value = reply.headers.get('retry-after')
  if (value === null) return undefined
  const ms = /^\d+$/.test(value) ? 1000 * Number(value) : Date.parse(value) - Date.now()
  return Number.isNaN(ms) ? undefined : ms
}

/** Resolves after a while, or rejects with the signal's reason. */
export function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      clearTimeout(timer)
      reject(signal!.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort)
      resolve()
    }, ms)
    if (signal?.aborted) abort()
    else signal?.addEventListener('abort', abort, { once: true })
  })
}

/** The error that a reply stands for. */
export async function refused(reply: Response): Promise<WeightsError> {
  await reply.body?.cancel()
  const { status } = reply
  const asked = retryAfterMs(reply)
  const advice =
    status === 401 || status === 403
      ? 'check the name; for a private model pass a token'
      : status === 404
        ? 'check the name'
        : asked === undefined
          ? 'try again later'
          : `try again in ${Math.ceil(asked / 1000)} s`
  return new WeightsError('missing', `${placeOf(reply)}: the server answers ${status} ${reply.statusText}; ${advice}`)
}

/** Where a reply came from, without the query: after a redirect it may hold a signature. */
export const placeOf = (reply: Response): string => reply.url.replace(/[?#].*/, '')

/** Not there. Development servers answer a path that is not there with the page itself. */
export const isMissing = (reply: Response): boolean =>
  reply.status === 404 || (reply.ok && reply.headers.get('content-type')?.startsWith('text/html') === true)

/** Length of the file in a full reply; a compressed body's length says nothing. */
export function lengthOf(reply: Response): number | undefined {
  const length = reply.headers.get('content-length')
  const encoding = reply.headers.get('content-encoding') ?? 'identity'
  return length !== null && /^\d+$/.test(length) && encoding === 'identity' ? Number(length) : undefined
}
