import { InputError, RequestError } from '../../errors.ts'
import type { FieldError } from './fields.ts'
import { COMPACT, dumps, type JsonValue } from './json.ts'
import { type JsonFault, parseJson } from './json_reader.ts'

/** The original's answer to a request that it refuses: `{"detail": ...}`. */
export function refuse(status: number, detail: string | readonly FieldError[], options?: ErrorOptions): RequestError {
  const listed = typeof detail === 'string' ? detail : detail.map((error) => new Map(Object.entries(error)))
  const body = dumps({ detail: finite(listed as JsonValue) }, COMPACT)
  const message =
    typeof detail === 'string' ? detail : detail.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`).join('; ')
  return new RequestError(status, body, `request: ${message}`, options)
}

/** Reads a body, which is UTF-8. Throws RequestError 400 for bytes that are not. */
export function decodeBody(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    throw refuse(400, UNREADABLE, { cause })
  }
}
const UNREADABLE = 'There was an error parsing the body'

/** Reads a body that should be JSON. Throws RequestError. */
export function parseBody(text: string): JsonValue {
  if (text === '') return null // no body at all
  try {
    return parseJson(text)
  } catch (cause) {
    if (!(cause instanceof InputError)) throw cause
    const { error, position, isLimit } = cause.cause as JsonFault
    if (isLimit) throw refuse(400, UNREADABLE, { cause })
    const fault = { type: 'json_invalid', loc: ['body', position], msg: 'JSON decode error', input: {}, ctx: { error } }
    throw refuse(422, [fault], { cause })
  }
}

/** Runs what plans a request; what its questions get wrong becomes the refusal that the original has for it. */
export async function refusing<A>(plan: () => Promise<A>): Promise<A> {
  try {
    return await plan()
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    const detail = typeof error.cause === 'string' ? error.cause : error.message
    throw refuse(error.code === 'too_long' ? 413 : 422, detail, { cause: error })
  }
}

/** What a body may hold, but no JSON answer: NaN and Infinity, which become null. */
function finite(value: JsonValue): JsonValue {
  if (typeof value === 'number') return Number.isFinite(value) ? value : null
  if (Array.isArray(value)) return value.map(finite)
  return value instanceof Map ? new Map([...value].map(([key, member]) => [key, finite(member)])) : value
}
