import type { StoredTensor } from './safetensors.ts'

/** Most bytes of a checkpoint that are in memory at once, per read in flight. */
export const chunkBytes = 8 * 2 ** 20
/** Unused bytes worth reading to save a read of their own. */
export const gapBytes = 64 * 2 ** 10
/** Tensors are cut at multiples of this, so that a part's place is a multiple of 4 bytes in every format, q8's scales too. */
const cutBytes = 256

/** A range of a file that is read at once. */
export interface Chunk {
  readonly file: string
  readonly begin: number
  end: number
  readonly pieces: Piece[]
}

/** A part of a tensor: `bytes` bytes from `offset`, found at `at` in the chunk. */
export interface Piece {
  readonly tensor: StoredTensor
  readonly offset: number
  readonly bytes: number
  readonly at: number
}

/** Ranges that cover the tensors in file order: large tensors are cut, small neighbours are read together. */
export function planChunks(tensors: readonly StoredTensor[]): Chunk[] {
  const chunks: Chunk[] = []
  const sorted = [...tensors].sort((a, b) => (a.file < b.file ? -1 : a.file > b.file ? 1 : a.begin - b.begin))
  for (const tensor of sorted) {
    for (let begin = tensor.begin; begin < tensor.end; ) {
      const open = chunks.at(-1)
      const near = open?.file === tensor.file && begin - open.end <= gapBytes
      const room = near ? chunkBytes - (begin - open.begin) : 0
      const rest = tensor.end - begin
      const bytes = rest <= room ? rest : Math.floor(room / cutBytes) * cutBytes
      if (!near || bytes <= 0) {
        chunks.push({ file: tensor.file, begin, end: begin, pieces: [] })
        continue
      }
      open.pieces.push({ tensor, offset: begin - tensor.begin, bytes, at: begin - open.begin })
      begin += bytes
      open.end = begin
    }
  }
  return chunks
}

/** Runs `tasks` in order, at most `width` at a time, and hands out the results in order. */
export async function* ahead<T>(tasks: Iterable<() => Promise<T>>, width: number): AsyncGenerator<T> {
  const running: Promise<T>[] = []
  for (const task of tasks) {
    const started = task()
    started.catch(() => {}) // it is awaited below, unless an earlier one fails first
    running.push(started)
    if (running.length >= width) yield await running.shift()!
  }
  while (running.length > 0) yield await running.shift()!
}
