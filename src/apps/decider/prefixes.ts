import type { Pools } from '../../models/qwen3_5/pools.ts'
import { FREE_SLOT, type Snapshot } from '../../models/qwen3_5/schedule.ts'

interface Entry extends Snapshot {
  readonly ids: readonly number[]
  /** Its run succeeded; until then it keeps its room and nobody continues it. */
  ready: boolean
}

/** Room for a prefix whose run is to come. */
export interface Reserved {
  readonly snapshot: Snapshot
  /** The run succeeded. */
  commit(): void
  /** It did not. */
  release(): void
}

/** Snapshots of prefixes, the least recently used first to go. */
export interface Prefixes {
  /** The longest kept prefix of these tokens, not all of them. */
  find(ids: readonly number[]): Snapshot | undefined
  /** Makes room for a prefix. Evicts what the budget does not hold beside it. */
  reserve(ids: readonly number[]): Reserved
  /** Lets go of everything over the budget. Call when no row is in flight. */
  trim(): void
  /** Cache rows from here on are nobody's. */
  readonly kvEnd: number
  /** Slots in use, the reserved ones counted in. */
  readonly slotEnd: number
  readonly bytes: number
  /** What a prefix of so many tokens occupies. */
  bytesOf(length: number): number
}

/** Owns the state slots and cache rows of a session, within a budget of bytes. */
export function createPrefixes(pools: Pick<Pools, 'bytesPerSlot' | 'bytesPerRow'>, budgetBytes: number): Prefixes {
  const entries: Entry[] = [] // least recently used first
  const bytesOf = (length: number): number => pools.bytesPerSlot + length * pools.bytesPerRow
  const total = (): number => entries.reduce((sum, e) => sum + bytesOf(e.length), 0)

  const remove = (entry: Entry): void => void entries.splice(entries.indexOf(entry), 1)
  const trimTo = (bytes: number): void => {
    for (const entry of entries.filter(({ ready }) => ready)) {
      if (total() <= bytes) break
      remove(entry)
    }
  }
  const freeSlot = (): number => {
    const used = new Set(entries.map((e) => e.slot))
    let slot = FREE_SLOT
    while (used.has(slot)) slot++
    return slot
  }
  /** The first gap between kept ranges that is long enough. */
  const freeRows = (length: number): number => {
    let start = 0
    for (const e of [...entries].sort((a, b) => a.kvStart - b.kvStart)) {
      if (e.kvStart - start >= length) return start
      start = e.kvStart + e.length
    }
    return start
  }

  return {
    find(ids) {
      const fits = (e: Entry): boolean => e.ready && e.length < ids.length && e.ids.every((id, i) => id === ids[i])
      const found = entries.filter(fits).sort((a, b) => b.length - a.length)[0]
      if (found) entries.push(...entries.splice(entries.indexOf(found), 1))
      return found
    },
    reserve(ids) {
      trimTo(Math.max(0, budgetBytes - bytesOf(ids.length)))
      const entry = { ids, slot: freeSlot(), kvStart: freeRows(ids.length), length: ids.length, ready: false }
      entries.push(entry)
      return {
        snapshot: entry,
        commit() {
          entry.ready = true
        },
        release: () => remove(entry),
      }
    },
    bytesOf,
    trim: () => trimTo(budgetBytes),
    get kvEnd() {
      return Math.max(0, ...entries.map((e) => e.kvStart + e.length))
    },
    get slotEnd() {
      return Math.max(FREE_SLOT, ...entries.map((e) => e.slot + 1))
    },
    get bytes() {
      return total()
    },
  }
}
