import { decodeBody, refuse } from '../apps/decider/refusal.ts'
import { untilAborted } from '../device/abort.ts'
import { RequestError } from '../errors.ts'

/** A signal that aborts when the client goes away or the time is up; `end` it when the work is done. */
export interface Deadline {
  readonly signal: AbortSignal
  /** Tells that the client is gone, for who learns of it otherwise. */
  leave(): void
  /** Something was answered: the time begins anew. */
  extend(): void
  end(): void
}

export function deadline(client: AbortSignal, seconds: number): Deadline {
  const abort = new AbortController()
  const leave = (): void => abort.abort(refuse(499, 'the client went away'))
  const late = (): void => abort.abort(refuse(503, `no answer within ${seconds} s; retry later`))
  const ms = Math.min(seconds * 1000, 2 ** 31 - 1) // what a timer holds
  let timer = setTimeout(late, ms)
  client.addEventListener('abort', leave)
  if (client.aborted) leave()
  return {
    signal: abort.signal,
    leave,
    extend() {
      clearTimeout(timer)
      timer = setTimeout(late, ms)
    },
    end() {
      clearTimeout(timer)
      client.removeEventListener('abort', leave)
    },
  }
}

/** The text of a request. Rejects with RequestError: 413 for more bytes than `most`, 400 for what is cut off or not UTF-8. */
export function readBody(request: Request, most: number, signal: AbortSignal): Promise<string> {
  const read = async (): Promise<string> => {
    const tooLarge = () => refuse(413, `the body has more than ${most} bytes, which is the limit; send less at once`)
    if (Number(request.headers.get('content-length')) > most) throw tooLarge()
    const parts: Uint8Array[] = []
    let length = 0
    try {
      for await (const part of request.body ?? []) {
        length += part.length
        if (length > most) throw tooLarge()
        parts.push(part)
      }
    } catch (cause) {
      throw cause instanceof RequestError ? cause : refuse(400, 'the body broke off', { cause })
    }
    const bytes = new Uint8Array(length)
    let at = 0
    for (const part of parts) {
      bytes.set(part, at)
      at += part.length
    }
    return decodeBody(bytes)
  }
  return untilAborted(read(), signal)
}
