// Keeps the page, and the models that come with it, for the times without a network. Our own, in place of workbox: the
// list is a dozen files that the build knows, and models are read by ranges, which workbox answers only for whole media.

interface Kept {
  readonly path: string
  /** Changes with the content. */
  readonly revision: string
  /** Kept when it is first used, or when the page asks for it: it is large. */
  readonly late: boolean
}
/** Put here by the build: every file of the site but this one. */
declare const __FILES__: readonly Kept[]

interface Waiting extends Event {
  waitUntil(work: Promise<unknown>): void
}
interface Asked extends Waiting {
  readonly request: Request
  respondWith(response: Promise<Response>): void
}
interface Told extends Waiting {
  readonly data: 'keep'
}
type On = <E>(type: string, hear: (event: E) => void) => void
const on = addEventListener as unknown as On
const site = (globalThis as unknown as { registration: { scope: string } }).registration.scope
const claim = (): Promise<void> => (globalThis as unknown as { clients: { claim(): Promise<void> } }).clients.claim()

const CACHE = 'pronounce-page'
/** The address that a file is kept under: another revision is another address. */
const keyOf = ({ path, revision }: Kept): string => new URL(`${path}?${revision}`, site).href
const files = new Map(__FILES__.map((file) => [new URL(file.path, site).href, file]))
const now = __FILES__.filter(({ late }) => !late)
const loads = new Map<string, Promise<void>>() // a large file is asked for by many ranges at once

/** The whole file out of the cache, into which it comes first where it is not there. */
async function kept(file: Kept): Promise<Response> {
  const cache = await caches.open(CACHE)
  const key = keyOf(file)
  const found = await cache.match(key)
  if (found) return found
  let load = loads.get(key)
  if (!load) {
    load = fetch(new URL(file.path, site), { cache: 'no-cache' })
      .then((response) => {
        if (!response.ok) throw new Error(`${file.path}: the server answers ${response.status}`)
        return cache.put(key, response)
      })
      .finally(() => loads.delete(key))
    loads.set(key, load)
  }
  await load
  return (await cache.match(key))!
}

/** What the request asks for: the whole, a range of it, or its length. */
async function answer(file: Kept, request: Request): Promise<Response> {
  const whole = await kept(file)
  const body = await whole.blob()
  const headers = new Headers(whole.headers)
  headers.delete('content-encoding') // the cache holds it decoded
  headers.set('content-length', `${body.size}`)
  if (request.method === 'HEAD') return new Response(null, { headers })
  const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.get('range') ?? '')
  if (!range) return new Response(body, { headers })
  const begin = Number(range[1])
  const end = Math.min(body.size, range[2] ? Number(range[2]) + 1 : body.size)
  headers.set('content-length', `${end - begin}`)
  headers.set('content-range', `bytes ${begin}-${end - 1}/${body.size}`)
  return new Response(body.slice(begin, end), { status: 206, headers })
}

/** Old revisions go when no tab of the old page is left. */
async function tidy(): Promise<void> {
  const cache = await caches.open(CACHE)
  const wanted = new Set(__FILES__.map(keyOf))
  for (const { url } of await cache.keys()) if (!wanted.has(url)) await cache.delete(url)
  await claim()
}

on<Waiting>('install', (event) => event.waitUntil(Promise.all(now.map(kept))))
on<Waiting>('activate', (event) => event.waitUntil(tidy()))
on<Told>('message', (event) => {
  if (event.data === 'keep') event.waitUntil(Promise.all(__FILES__.map(kept)))
})
on<Asked>('fetch', (event) => {
  const { request } = event
  const { origin, pathname } = new URL(request.url)
  const url = origin + (request.mode === 'navigate' ? pathname.replace(/\/$/, '/index.html') : pathname)
  const file = ['GET', 'HEAD'].includes(request.method) ? files.get(url) : undefined
  if (file) event.respondWith(answer(file, request))
})
