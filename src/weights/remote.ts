import { WeightsError } from '../errors.ts'
import { createHttp, type HttpOptions, isMissing, lengthOf, placeOf, refused } from './http.ts'

/** What a server says about a file. */
export interface RemoteFile {
  readonly bytes: number
  /** Of its version; undefined where the server gives none, or shows none to a page of another origin. */
  readonly etag?: string | undefined
  readonly sha256?: string | undefined
}

export interface TransferOptions {
  readonly signal?: AbortSignal | undefined
  /** The version that is expected. */
  readonly etag?: string | undefined
  /** Long reads in order: a server that ignores Range is listened to from the start of the file. */
  readonly inOrder?: boolean
}

/** Files below a URL. */
export interface Remote {
  readonly name: string
  /** Undefined where there is no such file. */
  stat(path: string, signal?: AbortSignal): Promise<RemoteFile | undefined>
  /**
   * Bytes [start, end) of a file as they come; what breaks off is taken up again where it broke. WeightsError 'missing'
   * for a file that is shorter, ChangedError for one of another version.
   */
  transfer(path: string, start: number, end: number, options?: TransferOptions): AsyncGenerator<Uint8Array>
}

/** The file is no longer the one that was begun with. */
export class ChangedError extends WeightsError {}

/** Largest file that is taken whole from a server that ignores Range. */
const wholeLimit = 64 * 2 ** 20

export function httpRemote(name: string, base: URL, options: HttpOptions): Remote {
  const http = createHttp(options)
  const root = base.href.replace(/\/*$/, '/')
  const urlOf = (path: string): string => new URL(path.split('/').map(encodeURIComponent).join('/'), root).href
  /** The last file that came whole, so that a server without Range is asked for it once. */
  let whole: { readonly path: string; readonly bytes: Uint8Array } | undefined

  async function stat(path: string, signal?: AbortSignal): Promise<RemoteFile | undefined> {
    signal?.throwIfAborted()
    if (whole?.path === path) return { bytes: whole.bytes.length }
    const head = await http.request('HEAD', urlOf(path), undefined, signal)
    if (isMissing(head)) return undefined
    const known = head.ok ? lengthOf(head) : undefined
    if (known !== undefined) return { bytes: known, etag: etagOf(head) }
    // HEAD is refused, or says no length: the reply to a range of one byte has the length of the file
    const one = await http.request('GET', urlOf(path), 'bytes=0-0', signal)
    const total = one.status === 200 ? lengthOf(one) : totalOf(one)
    if (isMissing(one) || total !== undefined) {
      await one.body?.cancel()
      return isMissing(one) ? undefined : { bytes: total!, etag: etagOf(one) }
    }
    if (one.status !== 200) throw await refused(one)
    return { bytes: (await takeWhole(path, one, signal)).length, etag: etagOf(one) }
  }

  async function* transfer(
    path: string,
    start: number,
    end: number,
    { signal, etag, inOrder = false }: TransferOptions = {},
  ): AsyncGenerator<Uint8Array> {
    let at = start
    for (let failures = 0; at < end; ) {
      signal?.throwIfAborted()
      if (whole?.path === path) return yield part(whole.bytes)
      const reply = await http.request('GET', urlOf(path), `bytes=${at}-${end - 1}`, signal)
      if (reply.status === 416) throw await tooShort(reply)
      if (reply.status !== 200 && reply.status !== 206) throw await refused(reply)
      if (etag !== undefined && etagOf(reply) !== undefined && etagOf(reply) !== etag) {
        await reply.body?.cancel()
        throw new ChangedError('format', `${urlOf(path)}: has changed while it was loaded; load it again`)
      }
      etag ??= etagOf(reply)
      if (reply.status === 200 && !inOrder) return yield part(await takeWhole(path, reply, signal))
      let ahead = reply.status === 200 ? at : 0 // bytes that come before those that were asked for
      if (reply.status === 206) await expectRange(reply, at)
      let broken: unknown
      try {
        for await (const bytes of http.body(reply)) {
          const wanted = bytes.subarray(ahead, ahead + end - at)
          ahead = Math.max(0, ahead - bytes.length)
          if (wanted.length === 0) continue
          at += wanted.length
          failures = 0
          yield wanted
          if (at >= end) return
        }
      } catch (cause) {
        broken = cause
      }
      signal?.throwIfAborted()
      if (await http.again(failures++, signal)) continue
      const message = `${urlOf(path)}: the transfer broke off at byte ${at}, before byte ${end}; load it again`
      throw new WeightsError('missing', message, { cause: broken })
    }

    function part(bytes: Uint8Array): Uint8Array {
      if (bytes.length < end) throw shorter(bytes.length)
      return bytes.slice(at, end)
    }
    async function expectRange(reply: Response, from: number): Promise<void> {
      const first = /^bytes (\d+)-/.exec(reply.headers.get('content-range') ?? '')?.[1]
      const total = totalOf(reply)
      if (total !== undefined && total < end) throw await tooShort(reply)
      if (first === undefined || Number(first) === from) return
      await reply.body?.cancel()
      throw new WeightsError('format', `${placeOf(reply)}: sent bytes from ${first}, expected from ${from}`)
    }
    async function tooShort(reply: Response): Promise<WeightsError> {
      await reply.body?.cancel()
      return shorter(totalOf(reply))
    }
    function shorter(bytes: number | undefined): WeightsError {
      const ends = bytes === undefined ? 'ends' : `ends at ${bytes},`
      return new WeightsError('missing', `${urlOf(path)}: ${ends} before byte ${end}; the file is incomplete`)
    }
  }

  /** The file that a reply without Range brings, asked for again where it breaks off. */
  async function takeWhole(path: string, first: Response, signal: AbortSignal | undefined): Promise<Uint8Array> {
    for (let [reply, failures] = [first, 0]; ; reply = await http.request('GET', urlOf(path), undefined, signal)) {
      if (reply.status !== 200) throw await refused(reply)
      const length = lengthOf(reply)
      if ((length ?? 0) > wholeLimit) {
        await reply.body?.cancel()
        throw tooLarge(placeOf(reply))
      }
      const parts: Uint8Array[] = []
      let got = 0
      let broken: unknown
      try {
        for await (const bytes of http.body(reply)) {
          parts.push(bytes)
          got += bytes.length
          if (got > wholeLimit) throw tooLarge(placeOf(reply))
        }
      } catch (cause) {
        if (cause instanceof WeightsError) throw cause
        broken = cause
      }
      signal?.throwIfAborted()
      if (broken === undefined && got >= (length ?? 0)) {
        whole = { path, bytes: joined(parts, got) }
        return whole.bytes
      }
      if (await http.again(failures++, signal)) continue
      const message = `${placeOf(reply)}: the transfer broke off at byte ${got}; load it again`
      throw new WeightsError('missing', message, { cause: broken })
    }
  }

  return { name, stat, transfer }
}

function joined(parts: readonly Uint8Array[], length: number): Uint8Array {
  const bytes = new Uint8Array(length)
  let at = 0
  for (const part of parts) {
    bytes.set(part, at)
    at += part.length
  }
  return bytes
}

const etagOf = (reply: Response): string | undefined => reply.headers.get('etag')?.replace(/^W\//, '')

function totalOf(reply: Response): number | undefined {
  const total = /\/(\d+)$/.exec(reply.headers.get('content-range') ?? '')?.[1]
  return total === undefined ? undefined : Number(total)
}

const tooLarge = (place: string): WeightsError =>
  new WeightsError(
    'unsupported',
    `${place}: the server ignores Range and the file is over 64 MiB; use a server that answers Range requests, or a cache`,
  )
