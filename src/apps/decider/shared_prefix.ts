import { serial } from '../../device/serial.ts'
import { CHUNK } from '../../graph/segments.ts'
import type { Session } from '../../models/qwen3_5/session.ts'
import { partOf } from './images.ts'
import { type Group, groupByPrefix, LEAST_SHARED } from './prefix_groups.ts'
import { createPrefixes } from './prefixes.ts'
import type { Row, Scorer } from './scorer.ts'

/** What kept prefixes may occupy on the device. */
export const PREFIX_BYTES = 256 * 2 ** 20

/**
 * Scores rows, running what several of them begin with once: a snapshot of its state is kept and every row goes on from
 * it, now and in later calls, until others have taken its place. The numbers are those of whole rows, bit for bit.
 */
export function sharedPrefixScorer(session: Session, budgetBytes = PREFIX_BYTES): Scorer {
  const prefixes = createPrefixes(session.pools, budgetBytes)
  const queue = serial() // a call's prefixes stay until its rows are read

  const kept = () => ({ slots: prefixes.slotEnd, kvRows: prefixes.kvEnd })

  /** The prefix of a group that has one, unless one is kept that is about as long. */
  function missing({ rows: [first], shared, hinted }: Group, rows: readonly Row[]): ReturnType<typeof partOf>[] {
    if (shared === 0) return []
    const row = rows[first!]!
    const { ids } = row
    const known = prefixes.find(ids.slice(0, shared + 1))
    const enough = known && shared - known.length < (hinted ? CHUNK : LEAST_SHARED)
    return enough ? [] : [partOf(row, 0, shared)]
  }

  /** Runs prefixes and keeps what they leave behind. */
  async function keep(wanted: readonly ReturnType<typeof partOf>[], signal: AbortSignal | undefined): Promise<void> {
    if (wanted.length === 0) return
    const reserved = wanted.map((part) => ({ part, ...prefixes.reserve(part.ids) }))
    try {
      const rows = reserved.map(({ part, snapshot }) => ({ ...part, slots: [], keep: snapshot }))
      await session.logits(rows, { signal, kept: kept() })
      for (const { commit } of reserved) commit()
    } catch (error) {
      for (const { release } of reserved) release()
      throw error
    }
  }

  /** A row behind the longest kept prefix that leaves its slots to it. */
  function behind(row: Row) {
    const { ids, slots } = row
    const after = prefixes.find(slots.length ? ids.slice(0, Math.min(...slots) + 1) : ids)
    if (!after) return { ...partOf(row, 0), slots }
    return { ...partOf(row, after.length), slots: slots.map((s) => s - after.length), after }
  }

  return {
    score: (rows, { signal } = {}) =>
      queue(async () => {
        const results: Float32Array[][] = []
        try {
          for (const wave of inWaves(groupByPrefix(rows), (length) => prefixes.bytesOf(length), budgetBytes)) {
            await keep(
              wave.flatMap((group) => missing(group, rows)),
              signal,
            )
            const indices = wave.flatMap((group) => group.rows)
            const logits = await session.logits(
              indices.map((i) => behind(rows[i]!)),
              { signal, kept: kept() },
            )
            indices.forEach((i, k) => {
              results[i] = logits[k]!
            })
          }
          return results
        } finally {
          prefixes.trim()
        }
      }, signal),
  }
}

/** Groups that run together: as many as the budget holds the prefixes of, at least one. */
function inWaves(groups: readonly Group[], bytesOf: (length: number) => number, budgetBytes: number): Group[][] {
  const waves: Group[][] = []
  let bytes = Infinity
  for (const group of groups) {
    const own = group.shared > 0 ? bytesOf(group.shared) : 0
    if (bytes + own > budgetBytes) {
      waves.push([])
      bytes = 0
    }
    bytes += own
    waves.at(-1)!.push(group)
  }
  return waves
}
