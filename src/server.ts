/**
 * A server over a loaded decider, and a voice: Request in, Response out, for Node, Deno and workers.
 * @module
 */
import { OpenAPIHono } from '@hono/zod-openapi'
import { HTTPException } from 'hono/http-exception'
import { methodNotAllowed } from 'hono/method-not-allowed'
import type { Decider } from './apps/decider/api.ts'
import { LIMITS, type Limits } from './apps/decider/limits.ts'
import { refuse } from './apps/decider/refusal.ts'
import type { Wire } from './apps/decider/wire.ts'
import { createBatcher } from './server/batcher.ts'
import { failureOf, jsonResponse } from './server/failure.ts'
import { type GuardOptions, guards } from './server/guard.ts'
import { healthOf, modelsOf } from './server/info.ts'
import { describe } from './server/openapi.ts'
import { reopening } from './server/reopening.ts'
import { deadline, readBody } from './server/request.ts'
import { type Speaker, speechRoute } from './server/speech.ts'
import { createStats } from './server/stats.ts'

export type { Limits } from './apps/decider/limits.ts'
export type { GuardOptions } from './server/guard.ts'
export type { SayRequest, Speaker } from './server/speech.ts'

export interface ServerOptions extends GuardOptions {
  readonly decider: Decider
  /** Where the model is from, for `/health`. Default: its name. */
  readonly model?: string | undefined
  /** Opens the voice, or has it open. Without it `/v1/audio/speech` is not found. */
  readonly speaker?: (() => Promise<Speaker>) | undefined
  /** Defaults: the original's. */
  readonly limits?: Partial<Limits> | undefined
  /** Tokens that requests put into one run together. Default: 8192. */
  readonly batchTokens?: number | undefined
  /** Seconds until a request without an answer is given up, and speech of which nothing more comes. Default: 120. */
  readonly timeoutSeconds?: number | undefined
  /** Of a request's body. Default: 4 MiB; 16 MiB for a model that sees. */
  readonly maxBodyBytes?: number | undefined
  /** Reads images at no more pixels than these. Default: 2^20, which are 1024 tokens. */
  readonly maxPixels?: number | undefined
  /** Speeches under way and waiting. Default: 16. */
  readonly maxSpeeches?: number | undefined
  /** Hears what the user of the server should know: a lost device, an error that is nobody's fault. */
  readonly onNews?: ((line: string) => void) | undefined
}

export interface Server {
  /** Answers a request; never rejects. */
  readonly fetch: (request: Request) => Promise<Response>
  /** Refuses what comes from now on with 503; resolves when all that came before is answered. Disposes of nothing. */
  close(): Promise<void>
}

/** Throws InputError for an option that cannot be used. */
export function createServer(options: ServerOptions): Server {
  const { decider, model = decider.model, speaker, maxSpeeches = 16, onNews = () => {} } = options
  const { batchTokens = 8192, timeoutSeconds = 120, maxPixels = 2 ** 20 } = options
  const { maxBodyBytes = (decider.config.vision ? 16 : 4) * 2 ** 20 } = options
  const { maxRows, ...others } = { ...LIMITS, ...options.limits }
  const limits = { ...others, maxRows: Math.min(maxRows, others.maxQueueRows) } // more could never be taken
  const wire = decider.wire(limits)
  const stats = createStats(limits)
  const scorer = reopening(decider, onNews)
  const batcher = createBatcher(scorer, { limits, batchTokens, onRun: stats.run })
  const active = new Set<Promise<unknown>>()
  let closing = false

  /** Runs work that `close` waits for. */
  function track<A>(work: Promise<A>): Promise<A> {
    const done = work.finally(() => active.delete(done))
    active.add(done)
    return done
  }

  /** One of the original's requests: read, checked, scored among others, answered. */
  async function answer(request: Request, plan: Wire['systemOne']): Promise<Response> {
    const { signal, end } = deadline(request.signal, timeoutSeconds)
    try {
      const call = await plan(await readBody(request, maxBodyBytes, signal), { signal, maxPixels })
      stats.request(call.rows)
      return jsonResponse(call.answer(await batcher.score(call.rows, { signal })))
    } finally {
      end()
    }
  }

  const app = new OpenAPIHono()
  app.use(...guards(options))
  app.post('/v1/systemone', ({ req }) => answer(req.raw, wire.systemOne))
  app.post('/decide', ({ req }) => answer(req.raw, wire.decide))
  if (speaker) {
    const say = speechRoute({ open: speaker, maxSpeeches, timeoutSeconds, maxBodyBytes, track })
    app.post('/v1/audio/speech', ({ req }) => say(req.raw))
  }
  app.get('/v1/models', (c) => c.json(modelsOf(decider)))
  app.get('/health', (c) => c.json(healthOf(decider, scorer.ready, model), scorer.ready ? 200 : 503))
  app.get('/stats', (c) => c.json(stats.report(batcher.outstandingRows)))
  describe(app, { key: options.apiKey !== undefined, speech: speaker !== undefined })
  app.use(
    methodNotAllowed({
      app,
      onMethodNotAllowed: (c, methods) => c.json(WRONG_METHOD, 405, { allow: methods.join(', ') }),
    }),
  )
  app.notFound((c) => c.json({ detail: 'Not Found' }, 404))
  app.onError((error) => {
    if (error instanceof HTTPException) return error.getResponse()
    const failure = failureOf(error)
    stats.failure(failure)
    if (failure.status === 500) onNews(`error: ${error.stack ?? error.message}`)
    return jsonResponse(failure.body, failure.status)
  })

  return {
    fetch: (request) => {
      if (closing) return Promise.resolve(jsonResponse(refuse(503, 'the server is shutting down').body, 503))
      return track(Promise.resolve(app.fetch(request)))
    },
    async close() {
      closing = true
      while (active.size > 0) await Promise.allSettled([...active])
    },
  }
}

const WRONG_METHOD = { detail: 'Method Not Allowed' }
