import { expect } from 'vitest'
import type { Decider } from '../../src/apps/decider/api.ts'
import { createDecider } from '../../src/apps/decider/decider.ts'
import type { Eyes } from '../../src/apps/decider/images.ts'
import type { Row, Scorer } from '../../src/apps/decider/scorer.ts'
import { cpuDevice } from '../../src/device/cpu.ts'
import { createServer, type Server, type ServerOptions } from '../../src/server.ts'
import { nanoConfig, tokenizer } from '../apps/decider/nano.ts'

const LABELS = 99

/** Logits that depend on all ids of a row and on nothing else. */
export function logitsOf({ ids, slots }: Row): Float32Array[] {
  return slots.map((slot) => {
    let hash = 17
    for (const id of ids.slice(0, slot + 1)) hash = (Math.imul(hash, 31) + id) >>> 0
    return Float32Array.from({ length: LABELS }, (_, i) => ((Math.imul(hash, i + 7) >>> 0) % 1000) / 100)
  })
}

/** Scores by hash, and remembers the runs. */
export function hashScorer(delayMs = 0) {
  const runs: { rows: readonly Row[]; signal: AbortSignal | undefined }[] = []
  const score: Scorer['score'] = async (rows, { signal } = {}) => {
    runs.push({ rows, signal })
    if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs))
    signal?.throwIfAborted()
    return rows.map(logitsOf)
  }
  return { score, runs }
}

/** A decider of the nano model's tokenizer and config over a scorer; its device is the CPU. */
export const deciderOf = (
  scorer: Scorer,
  { eyes, ...holder }: Partial<Pick<Decider, 'recover' | 'device'>> & { eyes?: Eyes } = {},
): Decider =>
  createDecider({
    tokenizer,
    config: nanoConfig,
    scorer,
    maxTokens: 4096,
    ...(eyes && { eyes }),
    holder: { device: cpuDevice('test'), recover: async () => {}, ...holder },
  })

/** A server over a scorer. */
export const serverOf = (scorer: Scorer, options: Partial<ServerOptions> = {}): Server =>
  createServer({ decider: deciderOf(scorer), ...options })

/** A file as requests have it. */
export const dataUrl = (file: Uint8Array, type = 'image/png'): string =>
  `data:${type};base64,${Buffer.from(file).toString('base64')}`

export const URL_BASE = 'http://localhost:8000'
export const JSON_TYPE = { 'content-type': 'application/json' }

export const post = (server: Server, path: string, body: BodyInit, init: RequestInit = {}): Promise<Response> =>
  server.fetch(new Request(`${URL_BASE}${path}`, { method: 'POST', headers: JSON_TYPE, body, ...init }))

export const get = (server: Server, path: string, headers: Record<string, string> = {}): Promise<Response> =>
  server.fetch(new Request(`${URL_BASE}${path}`, { headers }))

/** Status and JSON body. */
export async function read(response: Response | Promise<Response>): Promise<[number, unknown]> {
  const { status, headers, body } = await response
  expect(headers.get('content-type')).toBe('application/json')
  return [status, await new Response(body).json()]
}

/** A body with `rows` yes-or-no questions about a state. */
export const asking = (rows: number, state = 'My card was charged twice.'): string =>
  JSON.stringify({
    state,
    questions: Object.fromEntries(
      Array.from({ length: rows }, (_, i) => [`q${i}`, { type: 'noul', instructions: `Is it ${i}?` }]),
    ),
  })

/** Settles when `done` says so. */
export async function until(done: () => boolean): Promise<void> {
  while (!done()) await new Promise((resolve) => setImmediate(resolve))
}
