import type { Device, Profile, Program } from '../../device/device.ts'
import { recordedProgram } from '../../device/recorded.ts'
import { serial } from '../../device/serial.ts'
import { ShapeError, WeightsError } from '../../errors.ts'
import type { Graph } from '../../graph/graph.ts'
import { segmentTables } from '../../graph/segments.ts'
import type { Target } from '../../graph/target.ts'
import type { Tensor } from '../../graph/tensor.ts'
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
export function textSession(device: Device, c: TextConfig, w: TextWeights, head: Tensor): Session {
  const pools = makePools(device, c)
  const queue = serial() // a long row is a series of runs: nobody else's run may come between
  const build = (target: Target): Graph => textGraph(target, c, w, pools.layers, head)
  let table = new Uint8Array() // of a run's embedding rows: kept, since new memory costs more than the rows
  const recorded = recordedProgram(device, build, { probes: variantProbes })

  async function run(
    { pieces }: Run,
    rows: readonly Row[],
    results: Float32Array[][],
    options: SessionOptions,
  ): Promise<void> {
    const ids: number[] = []
    const positions: number[] = []
    const reads: { token: number; row: number; slot: number }[] = []
    for (const { row, from, segment } of pieces) {
      const { ids: all, slots, after } = rows[row]!
      slots.forEach((position, slot) => {
        if (position >= from && position < from + segment.length)
          reads.push({ token: ids.length + position - from, row, slot })
      })
      for (let i = 0; i < segment.length; i++) {
        ids.push(all[from + i]!)
        positions.push((after?.length ?? 0) + from + i)
      }
    }
    const read = reads.length ? reads.map((r) => r.token) : [0] // a dispatch of no rows is no dispatch
    const { counts, segments, segmentOf, chunks } = segmentTables(
      pieces.map((p) => p.segment),
      read.length,
    )
    const distinct = [...new Set(ids)]
    const index = new Map(distinct.map((id, i) => [id, i]))
    const bytes = ids.length * w.embedding.bytesPerRow
    if (table.length < bytes) table = new Uint8Array(bytes)
    await w.embedding.read(distinct, options.signal, table)
    const inputs = {
      table,
      ids: Uint32Array.from(ids, (id) => index.get(id)!),
      rope: ropeTable([positions, positions, positions], c.attention),
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
      rows.forEach((row, i) => checkRow(row, i, c))
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

function checkRow({ ids, slots, after }: Row, i: number, c: TextConfig): void {
  if (ids.length === 0) throw new ShapeError(`logits: row ${i} has no tokens`)
  const wrong = ids.find((id) => !(Number.isInteger(id) && id >= 0 && id < c.vocabulary))
  if (wrong !== undefined)
    throw new ShapeError(`logits: row ${i} has token id ${wrong}, expected 0 to ${c.vocabulary - 1}`)
  const outside = slots.find((s) => !(Number.isInteger(s) && s >= 0 && s < ids.length))
  if (outside !== undefined)
    throw new ShapeError(`logits: row ${i} is read at ${outside}, expected 0 to ${ids.length - 1}`)
  const length = ids.length + (after?.length ?? 0)
  if (length > c.maxPositions)
    throw new ShapeError(`logits: row ${i} has ${length} tokens, the model takes ${c.maxPositions}`)
}
