import { CHUNK, type Segment } from '../../graph/segments.ts'
import type { Positions } from './rope.ts'

/** A row of tokens to be read at some of its positions, perhaps behind a prefix that was run before. */
export interface Row {
  readonly ids: readonly number[]
  /** Places in `ids` whose logits are read. */
  readonly slots: readonly number[]
  /** Of its tokens; absent: they count on from what it continues. */
  readonly positions?: Positions | undefined
  /** What it continues; absent: nothing. */
  readonly after?: Snapshot | undefined
  /** Where to leave its state and cache rows for others to continue; absent: nobody does. */
  readonly keep?: { readonly slot: number; readonly kvStart: number } | undefined
}

/** A prefix that was run and kept: its state, its cache rows and its length, which is a multiple of the chunk. */
export interface Snapshot {
  readonly slot: number
  readonly kvStart: number
  readonly length: number
}

/** One run: pieces of rows. */
export interface Run {
  readonly pieces: readonly Piece[]
  readonly tokens: number
}

export interface Piece {
  readonly row: number
  readonly from: number // its tokens: [from, from + segment.length) of the row
  readonly segment: Segment
}

/** State slots 1 and 2 hand on the state of rows that take several runs; from here on they are the caller's. */
export const FREE_SLOT = 3
const handOn = [1, 2]

export interface Schedule {
  readonly runs: readonly Run[]
  /** Cache rows that the runs touch, counted from 0. */
  readonly kvRows: number
}

/**
 * Packs rows into runs, in order, of at most so many tokens each: `most` of the first, the second and so on, the last for
 * all that follow. Cache rows from `kvFree` on are used for rows that nobody continues. A longer row becomes a series of
 * runs that hand on their state; its pieces end at multiples of the delta rule's chunk, so that they add up in the same
 * order as the whole.
 */
export function schedule(rows: readonly Row[], most: readonly number[], kvFree = 0): Schedule {
  const runs: Run[] = []
  const room = (): number => {
    const own = most[Math.min(runs.length, most.length - 1)]!
    return Math.max(CHUNK, Math.floor(own / CHUNK) * CHUNK)
  }
  let pieces: Piece[] = []
  let tokens = 0
  let kvNext = kvFree
  let kvRows = kvFree
  const close = (): void => {
    if (pieces.length) runs.push({ pieces, tokens })
    pieces = []
    tokens = 0
    kvNext = kvFree
  }
  rows.forEach(({ ids, after, keep }, row) => {
    if (tokens + ids.length > room()) close()
    const long = ids.length > room()
    const kvStart = keep?.kvStart ?? kvNext
    if (!keep) kvNext += ids.length
    kvRows = Math.max(kvRows, kvStart + ids.length, after ? after.kvStart + after.length : 0)
    let state = after?.slot ?? 0
    for (let from = 0; from < ids.length; ) {
      const length = Math.min(room(), ids.length - from)
      const last = from + length === ids.length
      const to = last ? (keep?.slot ?? 0) : handOn.find((s) => s !== state)!
      pieces.push({
        row,
        from,
        segment: {
          length,
          from: state,
          to,
          prefixStart: after?.kvStart ?? 0,
          prefixLength: after?.length ?? 0,
          kvStart,
          kvBefore: from,
        },
      })
      tokens += length
      state = to
      from += length
      if (!last) {
        runs.push({ pieces, tokens })
        pieces = []
        tokens = 0
      }
    }
    if (long) close()
  })
  close()
  return { runs, kvRows }
}
