import { CHUNK } from '../../graph/segments.ts'
import type { Row } from './scorer.ts'

/** Shorter prefixes cost less to run again than to share. */
export const LEAST_SHARED = 192

/** Rows that go on from one prefix. */
export interface Group {
  /** Indices of the rows. */
  readonly rows: readonly number[]
  /** Tokens that they begin with, in whole chunks so that sums stay in order; 0: a row of its own. */
  readonly shared: number
  /** A prefix that fewer tokens are kept for: later rows are said to begin with it too. */
  readonly hinted: boolean
}

type Ids = readonly number[]

/**
 * What to run once: the partition of the rows with the fewest tokens to run, where a prefix counts once for its group.
 * Rows that say what later rows will begin with are grouped by that.
 */
export function groupByPrefix(rows: readonly Row[]): Group[] {
  const hints = rows.map(({ prefix = 0, ids }) => wholeChunks(Math.min(prefix, ids.length - 1)))
  const indices = rows.map((_, i) => i)
  const hinted = partition(
    indices.filter((i) => hints[i]! > 0),
    (i) => rows[i]!.ids.slice(0, hints[i]),
  ).map((members): Group => ({ rows: members, shared: hints[members[0]!]!, hinted: true }))
  const others = indices.filter((i) => hints[i] === 0)
  return [...hinted, ...(others.length > 0 ? cheapest(rows, others).groups : [])]
}

function cheapest(rows: readonly Row[], members: readonly number[]): { tokens: number; groups: Group[] } {
  const lengths = members.map((i) => rows[i]!.ids.length)
  const total = lengths.reduce((sum, length) => sum + length, 0)
  const alone = members.map((i): Group => ({ rows: [i], shared: 0, hinted: false }))
  if (members.length === 1) return { tokens: total, groups: alone }

  const shared = wholeChunks(commonPrefix(members.map((i) => rows[i]!)))
  const together =
    shared < LEAST_SHARED
      ? { tokens: total, groups: alone }
      : { tokens: total - (members.length - 1) * shared, groups: [{ rows: members, shared, hinted: false }] }
  const parts = partition(members, (i) => rows[i]!.ids.slice(shared, shared + CHUNK))
  if (parts.length === 1 || parts.length === members.length) return together
  const apart = parts.map((part) => cheapest(rows, part))
  const tokens = apart.reduce((sum, part) => sum + part.tokens, 0)
  return tokens < together.tokens ? { tokens, groups: apart.flatMap(({ groups }) => groups) } : together
}

/** Members by the ids that they have there. */
function partition(members: readonly number[], idsOf: (member: number) => Ids): number[][] {
  const parts = new Map<string, number[]>()
  for (const member of members) {
    const key = idsOf(member).join()
    const part = parts.get(key)
    if (part) part.push(member)
    else parts.set(key, [member])
  }
  return [...parts.values()]
}

const wholeChunks = (tokens: number): number => Math.floor(tokens / CHUNK) * CHUNK

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
