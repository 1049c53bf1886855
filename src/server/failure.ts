import { refuse } from '../apps/decider/refusal.ts'
import { DeviceError, InputError, RequestError } from '../errors.ts'

/** What a request that failed is answered with: `{"detail": ...}`, like the original's. */
export function failureOf(error: unknown): RequestError {
  if (error instanceof RequestError) return error
  if (error instanceof InputError) return refuse(error.code === 'too_long' ? 413 : 422, error.message)
  if (error instanceof DeviceError) return refuse(503, `${error.message}; retry later`)
  return refuse(500, 'Internal Server Error', { cause: error })
}

export const jsonResponse = (body: string, status = 200): Response =>
  new Response(body, {
    status,
    headers: { 'content-type': 'application/json', ...(status === 503 && { 'retry-after': '1' }) },
  })
