import type { Fill } from '../device/fill.ts'
import { ShapeError, WeightsError } from '../errors.ts'
import { ahead, chunkBytes, gapBytes } from './chunks.ts'
import { bytesPerValue, convert, type StoredFormat } from './convert.ts'
import type { StoredTensor } from './safetensors.ts'
import type { Source } from './source.ts'

/** A matrix that stays on the host, such as an embedding of which a request needs a few rows. */
export interface RowTable {
  readonly rows: number
  readonly width: number
  /** As the checkpoint stores it. */
  readonly format: StoredFormat
  readonly bytesPerRow: number
  /** Rows in the order of `ids`, ids.length * bytesPerRow bytes. ShapeError for an id that is no row. */
  read(ids: ArrayLike<number>, signal?: AbortSignal): Promise<Fill>
}

/** Bytes of rows that a table on disk remembers. */
const cacheBytes = 32 * 2 ** 20
/** Reads in flight at once. */
const readers = 8

/** A table that is read from its file row by row. */
export function rowsOnDisk(source: Source, stored: StoredTensor, format: StoredFormat): RowTable {
  const table = describe(stored, format)
  const { bytesPerRow } = table
  const cache = new Map<number, Uint8Array>() // the least recently used row comes first
  const capacity = Math.floor(cacheBytes / bytesPerRow)

  async function read(ids: ArrayLike<number>, signal?: AbortSignal): Promise<Fill> {
    const rows = new Map<number, Uint8Array>()
    const absent: number[] = []
    for (const id of new Set(checked(table, stored, ids))) {
      const row = cache.get(id)
      if (row) rows.set(id, row)
      else absent.push(id)
    }
    const reads = spans(absent, bytesPerRow).map((span) => async () => {
      const begin = stored.begin + span[0]! * bytesPerRow
      const end = stored.begin + (span.at(-1)! + 1) * bytesPerRow
      return { span, bytes: await source.read(stored.file, begin, end, signal) }
    })
    for await (const { span, bytes } of ahead(reads, readers)) {
      for (const id of span) {
        const at = (id - span[0]!) * bytesPerRow
        rows.set(id, bytes.slice(at, at + bytesPerRow))
      }
    }
    for (const [id, row] of rows) {
      cache.delete(id)
      cache.set(id, row)
    }
    for (const id of cache.keys()) {
      if (cache.size <= capacity) break
      cache.delete(id)
    }
    return gathered(ids, bytesPerRow, (id) => rows.get(id)!)
  }
  return { ...table, read }
}

/** A table in memory. `fill` takes its bytes piece by piece; rows can be read when all have come. */
export function rowsInMemory(stored: StoredTensor, format: StoredFormat) {
  const table = describe(stored, format)
  const { bytesPerRow } = table
  const all = new Uint8Array(stored.end - stored.begin)
  let filled = 0
  async function read(ids: ArrayLike<number>, signal?: AbortSignal): Promise<Fill> {
    signal?.throwIfAborted()
    checked(table, stored, ids)
    if (filled < all.length) throw new WeightsError('missing', `${stored.name}: is not loaded; await stream() first`)
    return gathered(ids, bytesPerRow, (id) => all.subarray(id * bytesPerRow, (id + 1) * bytesPerRow))
  }
  function fill(bytes: Uint8Array, offset: number): void {
    all.set(bytes, offset)
    filled += bytes.length
  }
  return { table: { ...table, read } satisfies RowTable, fill }
}

/** A tensor that the host computes with: its values in f32, once they are loaded. */
export interface HostValues {
  readonly shape: readonly number[]
  /** WeightsError before `stream` has read them. */
  readonly data: Float32Array
}

/** `fill` takes the tensor's bytes piece by piece. */
export function valuesInMemory(stored: StoredTensor, format: StoredFormat) {
  const width = bytesPerValue[format]
  const all = new Float32Array((stored.end - stored.begin) / width)
  let filled = 0
  const values: HostValues = {
    shape: stored.shape,
    get data() {
      if (filled < all.length) throw new WeightsError('missing', `${stored.name}: is not loaded; await stream() first`)
      return all
    },
  }
  function fill(bytes: Uint8Array, offset: number): void {
    const floats = convert(bytes, format, 'f32', stored.name).bytes.slice()
    all.set(new Float32Array(floats.buffer), offset / width)
    filled += bytes.length / width
  }
  return { values, fill }
}

function describe(stored: StoredTensor, format: StoredFormat): Omit<RowTable, 'read'> {
  const [rows, width] = stored.shape as [number, number]
  return { rows, width, format, bytesPerRow: width * bytesPerValue[format] }
}

function checked(table: { readonly rows: number }, stored: StoredTensor, ids: ArrayLike<number>): number[] {
  const list = Array.from(ids)
  const bad = list.find((id) => !(Number.isInteger(id) && id >= 0 && id < table.rows))
  if (bad === undefined) return list
  throw new ShapeError(`${stored.name}: row ${bad} is asked for, expected 0 to ${table.rows - 1}`)
}

/** Sorted ids in groups that are read at once: near to one another, and together at most a chunk. */
function spans(ids: readonly number[], bytesPerRow: number): number[][] {
  const groups: number[][] = []
  for (const id of [...ids].sort((a, b) => a - b)) {
    const group = groups.at(-1)
    const near = group && (id - group.at(-1)! - 1) * bytesPerRow <= gapBytes
    if (near && (id - group[0]! + 1) * bytesPerRow <= chunkBytes) group.push(id)
    else groups.push([id])
  }
  return groups
}

export const gathered = (ids: ArrayLike<number>, bytesPerRow: number, row: (id: number) => Uint8Array): Fill => ({
  byteLength: ids.length * bytesPerRow,
  fill(into) {
    for (let i = 0; i < ids.length; i++) into.set(row(ids[i]!), i * bytesPerRow)
  },
})
