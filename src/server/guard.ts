import type { MiddlewareHandler } from 'hono'
import { bearerAuth } from 'hono/bearer-auth'
import { cors } from 'hono/cors'
import { refuse } from '../apps/decider/refusal.ts'
import { InputError } from '../errors.ts'
import { jsonResponse } from './failure.ts'

/** Who may use a server. A page of another site must not be able to use that of its visitor. */
export interface GuardOptions {
  /** Names that a Host header may have besides localhost, 127.0.0.1 and [::1], without a port. */
  readonly allowHosts?: readonly string[] | undefined
  /** Origins whose pages may call it, for example `https://example.org`; without them no page of another origin may. */
  readonly allowOrigins?: readonly string[] | undefined
  /** What `Authorization: Bearer` has to say; without it nothing. */
  readonly apiKey?: string | undefined
}

const LOCAL = ['localhost', '127.0.0.1', '[::1]']
const KEY = /^[\w.~+/-]+=*$/ // RFC 6750, 2.1

/** What every request passes through, in this order. Throws InputError for an option that cannot be used. */
export function guards(options: GuardOptions): MiddlewareHandler[] {
  const { allowHosts = [], allowOrigins = [], apiKey } = options
  if (apiKey === '') throw new InputError('apiKey: is empty; choose a key, or none')
  if (apiKey !== undefined && !KEY.test(apiKey))
    throw new InputError('apiKey: has other characters than letters, digits and -._~+/; choose another key')
  const withPort = allowHosts.find((host) => /:\d+$/.test(host) && !host.includes('::'))
  if (withPort) throw new InputError(`allowHosts: ${withPort} has a port, expected the name alone`)
  return [
    knownHost([...LOCAL, ...allowHosts.map((host) => host.toLowerCase())]),
    knownOrigin(allowOrigins),
    ...(allowOrigins.length > 0 ? [cors({ origin: allowOrigins.includes('*') ? '*' : [...allowOrigins] })] : []),
    ...(apiKey === undefined ? [] : [withKey(apiKey)]),
    jsonOnly,
  ]
}

const refusal = (status: number, detail: string): Response => jsonResponse(refuse(status, detail).body, status)

/** A page can make a name of its own lead to this machine (DNS rebinding); the Host header then has that name. */
function knownHost(hosts: readonly string[]): MiddlewareHandler {
  return async ({ req }, next) => {
    const { host, hostname } = new URL(req.url)
    const header = req.header('host') ?? host
    const name = URL.canParse(`http://${header}`) ? new URL(`http://${header}`).hostname : ''
    if (hosts.includes(name) && hosts.includes(hostname)) return next()
    return refusal(403, `the Host header has ${JSON.stringify(header)}, expected localhost or a host that was allowed`)
  }
}

/** Browsers say which page a request is from. */
function knownOrigin(origins: readonly string[]): MiddlewareHandler {
  return async ({ req }, next) => {
    const origin = req.header('origin')
    if (origin === undefined || origins.includes('*') || origins.includes(origin)) return next()
    if (URL.canParse(origin) && new URL(origin).host === (req.header('host') ?? new URL(req.url).host)) return next()
    return refusal(403, `the Origin header has ${JSON.stringify(origin)}, expected none or an origin that was allowed`)
  }
}

/** Compares in constant time. */
function withKey(token: string): MiddlewareHandler {
  const detail = (text: string): { message: { detail: string } } => ({ message: { detail: text } })
  return bearerAuth({
    token,
    noAuthenticationHeader: detail('no Authorization header, expected Authorization: Bearer <key>'),
    invalidAuthenticationHeader: detail('the Authorization header is malformed, expected Authorization: Bearer <key>'),
    invalidToken: detail('the key is wrong'),
  })
}

/** A page can post forms and plain text to any server without being asked; JSON it cannot. */
const jsonOnly: MiddlewareHandler = async ({ req }, next) => {
  if (req.method !== 'POST') return next()
  const type = req.header('content-type')?.split(';', 1).join('').trim().toLowerCase()
  if (type === 'application/json') return next()
  return refusal(415, `the content type is ${type ?? 'missing'}, expected application/json`)
}
