import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createPrefixes } from '../../../src/apps/decider/prefixes.ts'
import type { Row } from '../../../src/apps/decider/scorer.ts'
import { commonPrefix, sharedPrefixScorer } from '../../../src/apps/decider/shared_prefix.ts'
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

describe('the owner of slots and cache rows', () => {
  const pools = { bytesPerSlot: 100, bytesPerRow: 1 }
  const keep = (p: ReturnType<typeof createPrefixes>, ids: number[]) => {
    const { snapshot, commit } = p.allocate(ids)
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
    p.allocate(ids(64, 1))
    expect(p.find([...ids(64, 1), 0])).toBeUndefined()
    expect(p.bytes).toBe(0)
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

  test('an aborted call keeps nothing half-made', async () => {
    const scorer = sharedPrefixScorer(counted())
    const rows = rowsOver(text(6), [41, 42])
    await expect(scorer.score(rows, { signal: AbortSignal.abort(new Error('enough')) })).rejects.toThrow('enough')
    expect(await scorer.score(rows)).toEqual(await session.logits(rows))
  })
})
