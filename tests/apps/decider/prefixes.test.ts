import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { commonPrefix, groupByPrefix } from '../../../src/apps/decider/prefix_groups.ts'
import { createPrefixes } from '../../../src/apps/decider/prefixes.ts'
import type { Row } from '../../../src/apps/decider/scorer.ts'
import { sharedPrefixScorer } from '../../../src/apps/decider/shared_prefix.ts'
import { cpuDevice } from '../../../src/device/cpu.ts'
import type { Device } from '../../../src/device/device.ts'
import { openDevice } from '../../../src/device/open.ts'
import type { Session } from '../../../src/models/qwen3_5/session.ts'
import { fixtureSession, tokens } from '../../models/qwen3_5/fixture.ts'

describe('what rows share', () => {
  const of = (...rows: number[][]) => commonPrefix(rows.map((ids) => ({ ids })))
  test('ends one before the shortest row', () => {
    expect(of([1, 2, 3, 9], [1, 2, 3, 8])).toBe(3)
    expect(of([1, 2, 3], [1, 2, 3])).toBe(2)
    expect(of([5, 1], [4, 1])).toBe(0)
    expect(of([1, 2], [1, 2, 3, 4], [1, 2, 3])).toBe(1)
    expect(of()).toBe(0)
  })
})

describe('groups of rows that share', () => {
  const run = (n: number, seed: number) => Array.from({ length: n }, (_, i) => seed * 10_000 + i)
  const row = (...parts: number[][]): Row => ({ ids: parts.flat(), slots: [] })
  const groups = (...rows: Row[]) => groupByPrefix(rows).map(({ rows, shared }) => [rows, shared])

  test('all of them, down to whole chunks', () => {
    expect(groups(row(run(200, 1), run(9, 2)), row(run(200, 1), run(9, 3)))).toEqual([[[0, 1], 192]])
    expect(groups(row(run(191, 1), run(9, 2)), row(run(191, 1), run(9, 3)))).toEqual([
      [[0], 0],
      [[1], 0],
    ])
    expect(groups(row(run(500, 1)))).toEqual([[[0], 0]])
    expect(groups()).toEqual([])
  })
  test('rows of several requests, each with its own state', () => {
    const [a, b] = [run(300, 1), run(400, 2)]
    const rows = [row(a, run(9, 3)), row(b, run(9, 4)), row(run(50, 5)), row(a, run(9, 6)), row(b, run(9, 7))]
    expect(groups(...rows)).toEqual([
      [[0, 3], 256],
      [[1, 4], 384],
      [[2], 0],
    ])
  })
  test('states that begin alike are shared where that leaves the fewest tokens', () => {
    const begin = run(256, 1)
    const [a, b] = [[begin, run(640, 2)].flat(), [begin, run(640, 3)].flat()]
    const asked = (state: number[], n: number) => Array.from({ length: n }, (_, i) => row(state, run(9, 10 + i)))
    expect(groups(...asked(a, 2), ...asked(b, 2))).toEqual([
      [[0, 1], 896],
      [[2, 3], 896],
    ])
    const once = Array.from({ length: 5 }, (_, i) => row(begin, run(70, 20 + i)))
    expect(groups(...once)).toEqual([[[0, 1, 2, 3, 4], 256]])
  })
  test('equal rows keep a token each', () => {
    expect(groups(row(run(256, 1)), row(run(256, 1)))).toEqual([[[0, 1], 192]])
  })
  test('what a row says of itself counts from a chunk on', () => {
    const hinted = (prefix: number, ...parts: number[][]): Row => ({ ...row(...parts), prefix })
    const schema = run(100, 1)
    expect(groups(hinted(100, schema, run(30, 2)), row(run(9, 3)), hinted(100, schema, run(30, 4)))).toEqual([
      [[0, 2], 64],
      [[1], 0],
    ])
    expect(groups(hinted(63, schema))).toEqual([[[0], 0]])
    expect(groups(hinted(64, run(64, 1)))).toEqual([[[0], 0]])
  })
})

describe('the owner of slots and cache rows', () => {
  const pools = { bytesPerSlot: 100, bytesPerRow: 1 }
  const keep = (p: ReturnType<typeof createPrefixes>, ids: number[]) => {
    const { snapshot, commit } = p.reserve(ids)
    commit()
    return snapshot
  }
  const ids = (n: number, seed: number) => Array.from({ length: n }, (_, i) => i + seed * 1000)

  test('finds the longest kept prefix of a row', () => {
    const p = createPrefixes(pools, 10_000)
    keep(p, ids(64, 1))
    const long = keep(p, ids(128, 1))
    keep(p, ids(64, 2))
    expect(p.find([...ids(128, 1), 7])).toMatchObject({ slot: long.slot, length: 128 })
    expect(p.find([...ids(100, 1), 7])).toMatchObject({ length: 64 })
    expect(p.find(ids(64, 1)), 'a row needs a token of its own').toBeUndefined()
    expect(p.find([...ids(64, 3), 7])).toBeUndefined()
  })

  test('holds the budget by letting go of the least recently used, and uses its room again', () => {
    const p = createPrefixes(pools, 500) // three of 164 bytes
    const [a, b, c] = [1, 2, 3].map((n) => keep(p, ids(64, n)))
    p.find([...ids(64, 1), 0]) // a is used again
    const d = keep(p, ids(64, 4)) // b goes
    expect(p.find([...ids(64, 2), 0])).toBeUndefined()
    expect(d).toMatchObject({ slot: b!.slot, kvStart: b!.kvStart })
    for (const kept of [a, c]) expect([kept!.slot, kept!.kvStart]).not.toEqual([d.slot, d.kvStart])
    expect(p.bytes).toBe(3 * 164)
    expect(p.kvEnd).toBe(192)
    expect(p.slotEnd).toBe(6)
  })

  test('a prefix over the budget lives for its call alone', () => {
    const p = createPrefixes(pools, 500)
    keep(p, ids(64, 1))
    keep(p, ids(640, 2))
    expect(p.find([...ids(640, 2), 0])).toMatchObject({ length: 640 })
    p.trim()
    expect(p.bytes).toBe(0)
    expect([p.kvEnd, p.slotEnd]).toEqual([0, 3])
  })

  test('what was not committed is nobody’s', () => {
    const p = createPrefixes(pools, 500)
    const { snapshot, release } = p.reserve(ids(64, 1))
    expect(p.find([...ids(64, 1), 0])).toBeUndefined()
    p.trim()
    expect(p.reserve(ids(64, 2)).snapshot).not.toMatchObject({ slot: snapshot.slot }) // its room is taken
    release()
    expect(p.bytes).toBe(164)
    expect(p.reserve(ids(64, 3)).snapshot).toMatchObject({ slot: snapshot.slot, kvStart: snapshot.kvStart })
  })
})

describe.each([
  ['cpu', async () => cpuDevice('test')],
  ['webgpu', () => openDevice('webgpu', { precision: 'f32' })],
] as const)('rows behind a shared prefix on %s', (_, open) => {
  let device: Device
  let session: Session
  let tokensRun: number
  /** Counts the tokens that run. */
  const counted = (): Session => ({
    ...session,
    logits: (rows, options) => {
      tokensRun += rows.reduce((n, { ids }) => n + ids.length, 0)
      return session.logits(rows, options)
    },
  })
  const text = (seed: number) => tokens(300, 512, seed)
  const rowsOver = (text: number[], seeds: number[]): Row[] =>
    seeds.map((seed) => ({ ids: [...text, ...tokens(20, 512, seed)], slots: [text.length + 19] }))
  beforeAll(async () => {
    device = await open()
    session = await fixtureSession('qwen35-text-tiny', device)
  })
  afterAll(() => device.dispose())

  test('the same bits as whole rows, and the text is run once', async () => {
    const scorer = sharedPrefixScorer(counted())
    const rows = rowsOver(text(1), [11, 12, 13])
    const whole = await session.logits(rows)
    tokensRun = 0
    expect(await scorer.score(rows)).toEqual(whole)
    expect(tokensRun).toBe(256 + 3 * 64) // 300 floored to whole chunks, then what is left of each row
    tokensRun = 0
    const later = rowsOver(text(1), [14])
    expect(await scorer.score(later)).toEqual(await session.logits(later))
    expect(tokensRun, 'a kept prefix is not run again').toBe(64)
  })

  test('a budget for one prefix serves texts in turn', async () => {
    const { bytesPerSlot, bytesPerRow } = session.pools
    const scorer = sharedPrefixScorer(counted(), bytesPerSlot + 256 * bytesPerRow)
    for (const seed of [1, 2, 1, 2]) {
      const rows = rowsOver(text(seed), [21, 22])
      tokensRun = 0
      expect(await scorer.score(rows), `text ${seed}`).toEqual(await session.logits(rows))
      expect(tokensRun).toBe(256 + 2 * 64)
    }
  })

  test('short or single texts are not kept', async () => {
    const scorer = sharedPrefixScorer(counted())
    tokensRun = 0
    await scorer.score(rowsOver(text(5), [31]))
    await scorer.score(rowsOver(text(5).slice(0, 100), [31, 32]))
    expect(tokensRun).toBe(320 + 2 * 120)
  })

  test('rows of several states in one call, over a budget of one of them', async () => {
    const { bytesPerSlot, bytesPerRow } = session.pools
    const rows = [7, 8, 7, 8, 9].flatMap((seed, i) => rowsOver(text(seed), [50 + i]))
    const whole = await session.logits(rows)
    for (const budget of [undefined, bytesPerSlot + 256 * bytesPerRow]) {
      tokensRun = 0
      expect(await sharedPrefixScorer(counted(), budget).score(rows)).toEqual(whole)
      expect(tokensRun).toBe(2 * 256 + 4 * 64 + 320)
    }
  })

  test('a schema that rows begin with stays for the calls to come', async () => {
    const scorer = sharedPrefixScorer(counted())
    const schema = tokens(100, 512, 60)
    const behind = (seed: number): Row => ({ ...rowsOver(schema, [seed])[0]!, prefix: 100 })
    for (const [seed, run] of [
      [61, 64 + 56],
      [62, 56],
    ] as const) {
      tokensRun = 0
      expect(await scorer.score([behind(seed)])).toEqual(await session.logits([behind(seed)]))
      expect(tokensRun).toBe(run)
    }
  })

  test('an aborted call keeps nothing half-made', async () => {
    const scorer = sharedPrefixScorer(counted())
    const rows = rowsOver(text(6), [41, 42])
    await expect(scorer.score(rows, { signal: AbortSignal.abort(new Error('enough')) })).rejects.toThrow('enough')
    expect(await scorer.score(rows)).toEqual(await session.logits(rows))
  })
})
