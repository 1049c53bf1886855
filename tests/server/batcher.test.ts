import { describe, expect, test } from 'vitest'
import { LIMITS } from '../../src/apps/decider/limits.ts'
import type { Logits, Row, Scorer } from '../../src/apps/decider/scorer.ts'
import { InputError } from '../../src/errors.ts'
import { createBatcher } from '../../src/server/batcher.ts'
import { hashScorer, logitsOf, until } from './fake.ts'

const row = (...ids: number[]): Row => ({ ids, slots: [ids.length - 1] })
const batcherOf = (scorer: Scorer, { maxQueueRows = 100, batchTokens = 100 } = {}) =>
  createBatcher(scorer, { limits: { ...LIMITS, maxQueueRows }, batchTokens })

/** A scorer whose runs end when they are told to. */
function held() {
  const runs: { rows: readonly Row[]; signal: AbortSignal; go: () => void; fail: (error: Error) => void }[] = []
  const score: Scorer['score'] = (rows, options) =>
    new Promise<Logits>((resolve, reject) => {
      const signal = options!.signal!
      signal.addEventListener('abort', () => reject(signal.reason))
      runs.push({ rows, signal, go: () => resolve(rows.map(logitsOf)), fail: reject })
    })
  const run = async (i: number) => {
    await until(() => runs.length > i)
    return runs[i]!
  }
  return { score, runs, run }
}

describe('calls that come together', () => {
  test('share a run and have the logits that they have alone', async () => {
    const { score, runs } = hashScorer()
    const batcher = batcherOf({ score })
    const calls = [[row(1, 2)], [row(3), row(4, 5, 6)], [row(1, 2)]]
    const answers = await Promise.all(calls.map((rows) => batcher.score(rows)))
    expect(answers).toEqual(calls.map((rows) => rows.map(logitsOf)))
    expect(runs.map(({ rows }) => rows.length)).toEqual([4])
    expect(batcher.outstandingRows).toBe(0)
  })

  test('runs are filled by tokens, first come first served, and no call is divided', async () => {
    const { score, runs } = hashScorer()
    const batcher = batcherOf({ score }, { batchTokens: 5 })
    const calls = [[row(1, 2, 3)], [row(4), row(5)], [row(6)], [row(1, 2, 3, 4, 5, 6, 7)], [row(8)]]
    await Promise.all(calls.map((rows) => batcher.score(rows)))
    expect(runs.map(({ rows }) => rows)).toEqual([[...calls[0]!, ...calls[1]!], calls[2], calls[3], calls[4]])
  })

  test('those that come during a run share the next', async () => {
    const { score, run, runs } = held()
    const batcher = batcherOf({ score })
    const first = batcher.score([row(1)])
    const { go } = await run(0)
    const others = [batcher.score([row(2)]), batcher.score([row(3)])]
    go()
    await first
    ;(await run(1)).go()
    expect(await Promise.all(others)).toEqual([[logitsOf(row(2))], [logitsOf(row(3))]])
    expect(runs).toHaveLength(2)
  })

  test('no rows need no run', async () => {
    const { score, runs } = hashScorer()
    expect(await batcherOf({ score }).score([])).toEqual([])
    expect(runs).toEqual([])
  })
})

describe('a call that is aborted', () => {
  test('leaves the queue at once and is never run', async () => {
    const { score, run, runs } = held()
    const batcher = batcherOf({ score })
    const first = batcher.score([row(1)])
    const { go } = await run(0)
    const abort = new AbortController()
    const second = batcher.score([row(2), row(3)], { signal: abort.signal })
    expect(batcher.outstandingRows).toBe(3)
    abort.abort(new Error('gone'))
    await expect(second).rejects.toThrow('gone')
    expect(batcher.outstandingRows).toBe(1)
    go()
    await first
    expect(runs).toHaveLength(1)
  })

  test('does not stop the run that it shares; the last to leave does', async () => {
    const { score, run } = held()
    const batcher = batcherOf({ score })
    const aborts = [new AbortController(), new AbortController()]
    const calls = aborts.map(({ signal }, i) => batcher.score([row(i)], { signal }))
    const { signal } = await run(0)
    aborts[0]!.abort(new Error('first'))
    await expect(calls[0]).rejects.toThrow('first')
    expect(signal.aborted).toBe(false)
    aborts[1]!.abort(new Error('second'))
    await expect(calls[1]).rejects.toThrow('second')
    expect(signal.aborted).toBe(true)
    const next = batcher.score([row(9)])
    ;(await run(1)).go()
    expect(await next).toEqual([logitsOf(row(9))])
  })

  test('before it begins costs nothing', async () => {
    const { score, runs } = hashScorer()
    const batcher = batcherOf({ score })
    await expect(batcher.score([row(1)], { signal: AbortSignal.abort(new Error('early')) })).rejects.toThrow('early')
    expect([runs.length, batcher.outstandingRows]).toEqual([0, 0])
  })
})

test('the error of one call is not that of the others', async () => {
  const score: Scorer['score'] = async (rows) => {
    if (rows.some(({ ids }) => ids[0] === 13)) throw new InputError('thirteen')
    return rows.map(logitsOf)
  }
  const batcher = batcherOf({ score })
  const settled = await Promise.allSettled([[row(1)], [row(13)], [row(2)]].map((rows) => batcher.score(rows)))
  expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(settled[2]).toMatchObject({ value: [logitsOf(row(2))] })
  expect(batcher.outstandingRows).toBe(0)
})

test('what comes on top of the limit is refused with 503, and taken again later', async () => {
  const { score, run } = held()
  const batcher = batcherOf({ score }, { maxQueueRows: 4 })
  const three = [row(1), row(2), row(3)]
  const first = batcher.score(three)
  const refused = {
    status: 503,
    body: '{"detail":"server busy: 3 rows queued, the limit is 4 (DECIDER_MAX_QUEUE_ROWS); retry later"}',
  }
  await expect(batcher.score(three)).rejects.toMatchObject(refused)
  await expect(batcher.score(three)).rejects.toMatchObject(refused)
  ;(await run(0)).go()
  await first
  const again = batcher.score(three)
  ;(await run(1)).go()
  expect(await again).toEqual(three.map(logitsOf))
})
