import { serial } from '../../device/serial.ts'
import { CHUNK } from '../../graph/segments.ts'
import type { Session } from '../../models/qwen3_5/session.ts'
import { createPrefixes } from './prefixes.ts'
import type { Row, Scorer } from './scorer.ts'

/** Shorter prefixes cost less to run again than to share. */
const LEAST_SHARED = 192
/** What kept prefixes may occupy on the device. */
export const PREFIX_BYTES = 256 * 2 ** 20

/**
 * Scores rows, running what all of them begin with once: a snapshot of its state is kept and every row goes on from it,
 * now and in later calls, until others have taken its place. The numbers are those of whole rows, bit for bit.
 */
export function sharedPrefixScorer(session: Session, budgetBytes = PREFIX_BYTES): Scorer {
  const prefixes = createPrefixes(session.pools, budgetBytes)
  const queue = serial() // a call's prefix stays until its rows are read

  const kept = () => ({ slots: prefixes.slotEnd, kvRows: prefixes.kvEnd })

  /** Runs and keeps what the rows share, where that pays and no kept prefix covers it. */
  async function prepare(rows: readonly Row[], signal: AbortSignal | undefined): Promise<void> {
    const length = Math.floor(commonPrefix(rows) / CHUNK) * CHUNK // states are whole chunks, so that sums stay in order
    if (rows.length < 2 || length < LEAST_SHARED) return
    const ids = rows[0]!.ids.slice(0, length)
    const known = prefixes.find(rows[0]!.ids)
    if (known && length - known.length < LEAST_SHARED) return
    const { snapshot, commit } = prefixes.allocate(ids)
    const { slot, kvStart } = snapshot
    const above = { slots: Math.max(prefixes.slotEnd, slot + 1), kvRows: Math.max(prefixes.kvEnd, kvStart + length) }
    await session.logits([{ ids, slots: [], keep: { slot, kvStart } }], { signal, kept: above })
    commit()
  }

  return {
    score: (rows, { signal } = {}) =>
      queue(async () => {
        try {
          await prepare(rows, signal)
          const behind = rows.map(({ ids, slots }) => {
            const after = prefixes.find(slots.length ? ids.slice(0, Math.min(...slots) + 1) : ids)
            if (!after) return { ids, slots }
            return { ids: ids.slice(after.length), slots: slots.map((s) => s - after.length), after }
          })
          return await session.logits(behind, { signal, kept: kept() })
        } finally {
          prefixes.trim()
        }
      }, signal),
  }
}

/** Tokens that all rows begin with, at least one less than the shortest row has. */
export function commonPrefix(rows: readonly Pick<Row, 'ids'>[]): number {
  const [first] = rows
  if (!first) return 0
  let length = Math.min(...rows.map(({ ids }) => ids.length)) - 1
  for (const { ids } of rows) {
    let same = 0
    while (same < length && ids[same] === first.ids[same]) same++
    length = same
  }
  return length
}
