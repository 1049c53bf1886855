import type { Device, Profile, Program } from '../../device/device.ts'
import { recordedProgram } from '../../device/recorded.ts'
import { serial } from '../../device/serial.ts'
import { ShapeError, WeightsError } from '../../errors.ts'
import type { Graph } from '../../graph/graph.ts'
import { segmentTables } from '../../graph/segments.ts'
import type { Target } from '../../graph/target.ts'
import type { Tensor } from '../../graph/tensor.ts'
import { ALSO } from '../../kernels/embedding.ts'
import { variantProbes } from '../../kernels/lib/probes.ts'
import type { TextConfig } from './config.ts'
import { makePools, type Pools } from './pools.ts'
import { ropeTable } from './rope.ts'
import { FREE_SLOT, type Row, type Run, schedule } from './schedule.ts'
import { textGraph } from './text.ts'
import type { TextWeights } from './weights.ts'

export interface SessionOptions {
  readonly signal?: AbortSignal | undefined
  readonly onProfile?: ((profile: Profile) => void) | undefined
  /** State slots and cache rows below these hold what the caller keeps. */
  readonly kept?: { readonly slots: number; readonly kvRows: number } | undefined
}

/** What ids beyond the vocabulary stand for: rows that a vision tower made. */
export interface ImageRows {
  readonly features: Tensor // ['*', H] f32
  /** Undefined for what is not there. */
  rowOf(id: number): number | undefined
}

/** A loaded text model with its memory on one device. */
export interface Session {
  readonly config: TextConfig
  readonly pools: Pools
  /** Per row and slot: logits [L] over the head's rows, f32. Rows run together without changing each other. */
  logits(rows: readonly Row[], options?: SessionOptions): Promise<Float32Array[][]>
  /** The recorded program: dispatches, the most tokens of a run. */
  program(): Promise<Program>
  dispose(): void
}

/** `head`: [L, H], the rows of the LM head that are read. */
export function textSession(device: Device, c: TextConfig, w: TextWeights, head: Tensor, images?: ImageRows): Session {
  const pools = makePools(device, c)
  const queue = serial() // a long row is a series of runs: nobody else's run may come between
  const build = (target: Target): Graph => textGraph(target, c, w, pools.layers, head, images?.features)
  const index = indexer(c.vocabulary, images)
  const recorded = recordedProgram(device, build, { probes: variantProbes })

  async function run(
    { pieces, tokens }: Run,
    rows: readonly Row[],
    results: Float32Array[][],
    options: SessionOptions,
  ): Promise<void> {
    const ids = new Uint32Array(tokens)
    const axes = [new Int32Array(tokens), new Int32Array(tokens), new Int32Array(tokens)] as const
    const reads: { token: number; row: number; slot: number }[] = []
    let at = 0
    for (const { row, from, segment } of pieces) {
      const { ids: all, slots, after, positions } = rows[row]!
      slots.forEach((position, slot) => {
        if (position >= from && position < from + segment.length) reads.push({ token: at + position - from, row, slot })
      })
      for (let i = from; i < from + segment.length; i++, at++) {
        ids[at] = all[i]!
        for (const [k, axis] of axes.entries()) axis[at] = positions ? positions[k]![i]! : (after?.length ?? 0) + i
      }
    }
    const read = reads.length ? reads.map((r) => r.token) : [0] // a dispatch of no rows is no dispatch
    const { counts, segments, segmentOf, chunks } = segmentTables(
      pieces.map((p) => p.segment),
      read.length,
    )
    const { distinct, places } = index(ids)
    const inputs = {
      table: await w.embedding.read(distinct, options.signal),
      ids: places,
      rope: ropeTable(axes, c.attention),
      segments,
      segmentOf,
      chunks,
      read: Uint32Array.from(read),
    }
    const { logits } = await recorded.run(inputs, counts, options)
    const width = logits!.length / read.length
    reads.forEach(({ row, slot }, i) => {
      const values = logits!.subarray(i * width, (i + 1) * width)
      if (!values.every(Number.isFinite))
        throw new WeightsError(
          'format',
          `readout: row ${row} gives a logit that is not a finite number; the checkpoint holds NaN or infinite weights, or weights of another model`,
        )
      results[row]![slot] = values
    })
  }

  return {
    config: c,
    pools,
    program: recorded.program,
    async logits(rows, options = {}) {
      rows.forEach((row, i) => checkRow(row, i, c, images))
      return queue(async () => {
        const { maxTokens } = await recorded.program()
        const { slots = FREE_SLOT, kvRows: kvFree = 0 } = options.kept ?? {}
        const { runs, kvRows } = schedule(rows, maxTokens, kvFree)
        pools.reserve(Math.max(slots, FREE_SLOT), kvRows)
        const results: Float32Array[][] = rows.map(() => [])
        for (const r of runs) await run(r, rows, results, options)
        return results
      }, options.signal)
    },
    dispose() {
      pools.dispose()
    },
  }
}

/**
 * Tells the distinct ids of a run, in the order in which they come, and the place of each token's id among them, or of an
 * image's among the image rows.
 */
function indexer(vocabulary: number, images: ImageRows | undefined) {
  const seen = new Uint32Array(vocabulary) // place + 1; zeros between calls
  return (ids: Uint32Array): { distinct: Uint32Array; places: Uint32Array } => {
    const distinct = new Uint32Array(ids.length)
    let count = 0
    const places = ids.map((id) => {
      if (id >= vocabulary) return ALSO + images!.rowOf(id)!
      if (seen[id] === 0) {
        distinct[count++] = id
        seen[id] = count
      }
      return seen[id]! - 1
    })
    for (let i = 0; i < count; i++) seen[distinct[i]!] = 0
    return { distinct: distinct.subarray(0, Math.max(count, 1)), places } // of images alone: a table is not empty
  }
}

function checkRow(
  { ids, slots, after, positions }: Row,
  i: number,
  c: TextConfig,
  images: ImageRows | undefined,
): void {
  if (ids.length === 0) throw new ShapeError(`logits: row ${i} has no tokens`)
  const known = (id: number): boolean => id < c.vocabulary || images?.rowOf(id) !== undefined
  const wrong = ids.find((id) => !(Number.isInteger(id) && id >= 0 && known(id)))
  if (wrong !== undefined)
    throw new ShapeError(`logits: row ${i} has token id ${wrong}, expected 0 to ${c.vocabulary - 1}`)
  const axis = positions?.find(({ length }) => length !== ids.length)
  if (axis) throw new ShapeError(`logits: row ${i} has ${axis.length} positions, expected ${ids.length}`)
  const outside = slots.find((s) => !(Number.isInteger(s) && s >= 0 && s < ids.length))
  if (outside !== undefined)
    throw new ShapeError(`logits: row ${i} is read at ${outside}, expected 0 to ${ids.length - 1}`)
  const length = ids.length + (after?.length ?? 0)
  if (length > c.maxPositions)
    throw new ShapeError(`logits: row ${i} has ${length} tokens, the model takes ${c.maxPositions}`)
}
