import { fullOfImages, type Limits, overloaded } from '../apps/decider/limits.ts'
import type { Logits, Row, Scorer } from '../apps/decider/scorer.ts'

export interface BatcherOptions {
  readonly limits: Limits
  /** Tokens of a run. Calls are not divided: one of more tokens runs alone. */
  readonly batchTokens: number
  /** Told of every run before it begins. */
  readonly onRun?: (rows: readonly Row[]) => void
}

/** A scorer whose calls share runs. */
export interface Batcher extends Scorer {
  /** Those that wait or are being scored. */
  readonly outstandingRows: number
}

interface Call {
  readonly rows: readonly Row[]
  readonly tokens: number
  readonly resolve: (logits: Logits) => void
  readonly reject: (error: unknown) => void
  /** Told when nobody waits for it any more. */
  onLeave: () => void
}

/**
 * Scores the calls that came while the last run was under way in one run, first come first served. Rows do not change
 * each other's numbers, so every call has the logits that it would have alone. A call whose signal aborts leaves at
 * once, and a run that all its calls have left is stopped. Rejects with RequestError 503 where too many rows or images
 * wait.
 */
export function createBatcher(scorer: Scorer, { limits, batchTokens, onRun }: BatcherOptions): Batcher {
  const waiting: Call[] = []
  let outstandingRows = 0
  let outstandingImages = 0
  let working = false

  async function work(): Promise<void> {
    working = true
    await nextTurn() // for those that come in the same moment
    while (waiting.length > 0) await run(take())
    working = false
  }

  /** As many calls as the tokens of a run allow, at least one. */
  function take(): Call[] {
    let count = 1
    let tokens = waiting[0]!.tokens
    while (count < waiting.length && tokens + waiting[count]!.tokens <= batchTokens) tokens += waiting[count++]!.tokens
    return waiting.splice(0, count)
  }

  async function run(calls: readonly Call[]): Promise<void> {
    const abort = new AbortController()
    const left = new Set<Call>()
    for (const call of calls)
      call.onLeave = () => {
        left.add(call)
        if (left.size === calls.length) abort.abort()
      }
    const rows = calls.flatMap((call) => call.rows)
    onRun?.(rows)
    try {
      const logits = await scorer.score(rows, { signal: abort.signal })
      let at = 0
      for (const { rows, resolve } of calls) {
        resolve(logits.slice(at, at + rows.length))
        at += rows.length
      }
    } catch (error) {
      if (calls.length === 1) return calls[0]!.reject(error)
      for (const call of calls) if (!left.has(call)) await run([call]) // the error of one is not that of the others
    }
  }

  return {
    get outstandingRows() {
      return outstandingRows
    },
    async score(rows, { signal } = {}) {
      signal?.throwIfAborted()
      if (rows.length === 0) return []
      if (outstandingRows + rows.length > limits.maxQueueRows) throw overloaded(outstandingRows, limits)
      const images = new Set(rows.flatMap(({ images }) => images ?? [])).size
      if (images > 0 && outstandingImages + images > limits.maxQueueImages)
        throw fullOfImages(outstandingImages, limits)
      let leave = (): void => {}
      outstandingRows += rows.length
      outstandingImages += images
      try {
        return await new Promise<Logits>((resolve, reject) => {
          const tokens = rows.reduce((sum, { ids }) => sum + ids.length, 0)
          const call: Call = { rows, tokens, resolve, reject, onLeave: () => {} }
          leave = () => {
            const at = waiting.indexOf(call)
            if (at >= 0) waiting.splice(at, 1)
            reject(signal!.reason)
            call.onLeave()
          }
          signal?.addEventListener('abort', leave)
          waiting.push(call)
          if (!working) void work()
        })
      } finally {
        outstandingRows -= rows.length
        outstandingImages -= images
        signal?.removeEventListener('abort', leave)
      }
    },
  }
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve))
