import type { Inputs } from '../../device/device.ts'
import { joined } from '../../device/fill.ts'
import { segmentTables } from '../../graph/segments.ts'
import type { Counts } from '../../graph/tensor.ts'
import { ALSO } from '../../kernels/embedding.ts'
import type { RowTable } from '../../weights/load.ts'
import type { TextConfig } from './config.ts'
import { positionsFrom } from './positions.ts'
import { ropeTable, textRope } from './rope.ts'
import type { Row, Run } from './schedule.ts'

/** Which slot of which row a logit row of the run is for. */
export interface Read {
  readonly row: number
  readonly slot: number
}

export interface RunInputs {
  readonly inputs: Inputs
  readonly counts: Counts
  readonly reads: readonly Read[]
}

/** The row among the images' that an id beyond the vocabulary stands for. */
export type ImageRow = (id: number) => number

/** Makes what `TextInputs` asks for, run by run. Embedding rows are gathered when the device takes them. */
export function runInputs(c: TextConfig, embedding: RowTable, imageRow: ImageRow) {
  const index = indexer(c.vocabulary, imageRow)

  return async ({ pieces, tokens }: Run, rows: readonly Row[], signal?: AbortSignal): Promise<RunInputs> => {
    const ids = new Uint32Array(tokens)
    const rope: Float32Array[] = []
    const reads: Read[] = []
    const read: number[] = []
    let at = 0
    for (const { row, from, segment } of pieces) {
      const { ids: all, slots, after, positions } = rows[row]!
      const [begin, end] = [from, from + segment.length]
      ids.set(segment.length < all.length ? all.slice(begin, end) : all, at)
      rope.push(
        positions
          ? ropeTable(positionsFrom(positions, begin, end), c.attention)
          : textRope((after?.length ?? 0) + begin, segment.length, c.attention),
      )
      for (const [slot, place] of slots.entries()) {
        if (place < begin || place >= end) continue
        reads.push({ row, slot })
        read.push(at + place - begin)
      }
      at += segment.length
    }
    if (read.length === 0) read.push(0) // a dispatch of no rows is no dispatch
    const { counts, ...tables } = segmentTables(
      pieces.map((p) => p.segment),
      read.length,
    )
    const { distinct, places } = index(ids)
    const table = await embedding.read(distinct, signal)
    const inputs = { table, ids: places, rope: joined(rope), ...tables, read: Uint32Array.from(read) }
    return { inputs, counts, reads }
  }
}

/**
 * Tells the distinct ids of a run, in the order in which they come, and the place of each token's id among them, or of an
 * image's among the image rows.
 */
function indexer(vocabulary: number, imageRow: ImageRow) {
  const seen = new Uint32Array(vocabulary) // place + 1; zeros between calls
  return (ids: Uint32Array): { distinct: Uint32Array; places: Uint32Array } => {
    const distinct = new Uint32Array(ids.length)
    const places = new Uint32Array(ids.length)
    let count = 0
    for (let i = 0; i < ids.length; i++) {
      const id = ids[i]!
      if (id >= vocabulary) places[i] = ALSO + imageRow(id)
      else {
        if (seen[id] === 0) {
          distinct[count++] = id
          seen[id] = count
        }
        places[i] = seen[id]! - 1
      }
    }
    for (let i = 0; i < count; i++) seen[distinct[i]!] = 0
    return { distinct: distinct.subarray(0, Math.max(count, 1)), places } // of images alone: a table is not empty
  }
}
