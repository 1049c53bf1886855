import type { Device } from '../../../src/device/device.ts'
import { Graph } from '../../../src/graph/graph.ts'
import { segmentTables } from '../../../src/graph/segments.ts'
import { NO_COLUMN } from '../../../src/kernels/code_embedding.ts'
import { zonosLogits } from '../../../src/models/zonos/backbone.ts'
import { prefixRows } from '../../../src/models/zonos/conditioning.ts'
import type { ConditionValues } from '../../../src/models/zonos/conditions.ts'
import { CODEBOOKS, type ZonosConfig } from '../../../src/models/zonos/config.ts'
import type { Codes } from '../../../src/models/zonos/delay.ts'
import { openZonos } from '../../../src/models/zonos/load.ts'
import { makeMemory } from '../../../src/models/zonos/memory.ts'
import type { Prefix } from '../../../src/models/zonos/prefix.ts'
import { ropeTable } from '../../../src/models/zonos/rope.ts'
import type { ZonosWeights } from '../../../src/models/zonos/weights.ts'

export interface Loaded {
  readonly c: ZonosConfig
  readonly w: ZonosWeights
  release(): void
}

/** A checkpoint on a device. */
export async function loadZonos(folder: string, device: Device, layers?: 'q8'): Promise<Loaded> {
  const { config, load } = await openZonos(folder)
  const { weights, release } = await load({ device, layers })
  return { c: config, w: weights, release }
}

/** Values of the conditioners by name; phonemes under the name of their conditioner. Left out: the learned vector. */
export type Conditions = Readonly<Record<string, readonly number[] | null | undefined>>

/** The rows of a prefix. */
export function prefixOf({ c, w }: Loaded, { [PHONEMES]: ids, ...values }: Conditions): Prefix {
  return prefixRows(w.conditioners, c.hidden, ids!, values as ConditionValues) // what is undefined is left out
}
const PHONEMES = 'espeak'

/** [9, frames] as the fixtures have them, frame by frame. */
export function codesOf(books: { readonly shape: readonly number[]; readonly data: ArrayLike<number> }): Codes {
  const [, frames] = books.shape as [number, number]
  const data = new Uint16Array(frames * CODEBOOKS)
  for (let k = 0; k < CODEBOOKS; k++)
    for (let i = 0; i < frames; i++) data[i * CODEBOOKS + k] = books.data[k * frames + i]!
  return { frames, data }
}

/** Nested lists [9][frames]. */
export const listed = (books: readonly (readonly number[])[]): Codes =>
  codesOf({ shape: [books.length, books[0]!.length], data: books.flat() })

/** The transformer alone, over a given grid [W, 9] with two rows: every token is read out. */
export async function forcedLogits(device: Device, { c, w }: Loaded, grid: Uint32Array, prefixes: readonly Prefix[]) {
  const memory = makeMemory(device, c)
  const length = prefixes[0]!.rows.length / c.hidden
  const capacity = length + grid.length / CODEBOOKS
  memory.begin(grid, prefixes.length * capacity)
  const compile = (phase: 'prefill' | 'decode') => {
    const graph = new Graph(device.target)
    graph.output('logits', zonosLogits(graph, c, w, memory, phase))
    return device.compile(graph)
  }
  const programs = { prefill: await compile('prefill'), decode: await compile('decode') }
  /** What a run of these places reads: a place below `length` is the prefix's, then come the columns. */
  const inputs = (before: number, own: number) => {
    const segments = prefixes.map((_, row) => {
      const none = { from: 0, to: 0, prefixStart: 0, prefixLength: 0 }
      return { ...none, length: own, kvStart: row * capacity, kvBefore: before }
    })
    const places = prefixes.flatMap(() => Array.from({ length: own }, (_, i) => before + i))
    const { counts, ...tables } = segmentTables(segments, places.length)
    const prefix = new Float32Array(places.length * c.hidden)
    if (before === 0) prefixes.forEach(({ rows }, row) => prefix.set(rows, row * own * c.hidden))
    const read = Uint32Array.from(places, (_, t) => t)
    const columns = Uint32Array.from(places, (place) => (place < length ? NO_COLUMN : place - length))
    return [{ ...tables, prefix, read, columns, rope: ropeTable(places, c.headDim) }, counts] as const
  }
  return { memory, length, capacity, programs, inputs }
}
