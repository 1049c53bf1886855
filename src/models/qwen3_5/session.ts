import type { Device, Profile, Program } from '../../device/device.ts'
import { allFinite } from '../../device/formats.ts'
import { recordedProgram } from '../../device/recorded.ts'
import { serial } from '../../device/serial.ts'
import { ShapeError, WeightsError } from '../../errors.ts'
import type { Graph } from '../../graph/graph.ts'
import type { Target } from '../../graph/target.ts'
import type { Tensor } from '../../graph/tensor.ts'
import { variantProbes } from '../../kernels/lib/probes.ts'
import type { TextConfig } from './config.ts'
import { makePools, type Pools } from './pools.ts'
import { type Read, runInputs } from './run_inputs.ts'
import { FREE_SLOT, type Row, type Run, schedule } from './schedule.ts'
import { textGraph } from './text.ts'
import type { TextWeights } from './weights.ts'

export interface SessionOptions {
  readonly signal?: AbortSignal | undefined
  readonly onProfile?: ((profile: Profile) => void) | undefined
  /** State slots and cache rows below these hold what the caller keeps. */
  readonly kept?: { readonly slots: number; readonly kvRows: number } | undefined
  /** Most tokens of the first run, the second and so on, the last for all that follow. Default: what a binding takes. */
  readonly runTokens?: readonly number[] | undefined
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
  /**
   * Per row and slot: logits [L] over the head's rows, f32. Rows run together without changing each other. What a row
   * keeps is for later calls: no row of the same call may continue it or what it takes the place of.
   */
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
  const inputsOf = runInputs(c, w.embedding, (id) => images!.rowOf(id)!)
  const recorded = recordedProgram(device, build, { probes: variantProbes })

  /** One run after another: the host prepares and sends each while the device is at the one before. */
  async function inTurn(
    runs: readonly Run[],
    rows: readonly Row[],
    options: SessionOptions,
  ): Promise<Float32Array[][]> {
    const results: Float32Array[][] = rows.map(() => [])
    const sent: Promise<void>[] = []
    try {
      for (const run of runs) {
        const { inputs, counts, reads } = await inputsOf(run, rows, options.signal)
        const done = recorded.run(inputs, counts, options).then(({ logits }) => deal(logits!, reads, results))
        done.catch(() => {}) // it is heard in its turn
        sent.push(done)
        if (sent.length > 1) await sent.shift()
      }
      await sent[0]
      return results
    } finally {
      await Promise.allSettled(sent) // after a failure: nothing of this call runs on
    }
  }

  /**
   * The runs' logits. A variant that is switched off on the way has left later runs to begin with what it made, so that
   * all begin anew without it.
   */
  async function answers(rows: readonly Row[], options: SessionOptions): Promise<Float32Array[][]> {
    const { maxTokens } = await recorded.program()
    const { kept, runTokens = [maxTokens] } = options
    const { slots = FREE_SLOT, kvRows: kvFree = 0 } = kept ?? {}
    const most = runTokens.map((n) => Math.min(n, maxTokens))
    const { runs, kvRows } = schedule(rows, most, kvFree)
    pools.reserve(Math.max(slots, FREE_SLOT), kvRows)
    const { target } = device
    const isAsBefore = (): boolean => runs.length < 2 || device.target === target
    try {
      const results = await inTurn(runs, rows, options)
      if (isAsBefore()) return results
    } catch (error) {
      if (isAsBefore()) throw error
    }
    return answers(rows, options)
  }

  return {
    config: c,
    pools,
    program: recorded.program,
    async logits(rows, options = {}) {
      rows.forEach((row, i) => checkRow(row, i, c, images))
      checkKept(rows)
      return queue(() => answers(rows, options), options.signal)
    },
    dispose() {
      pools.dispose()
    },
  }
}

/** Deals a run's logits out to the rows and slots that they are for. */
function deal(logits: Float32Array, reads: readonly Read[], results: Float32Array[][]): void {
  const width = logits.length / reads.length
  reads.forEach(({ row, slot }, i) => {
    const values = logits.subarray(i * width, (i + 1) * width)
    if (!allFinite(values))
      throw new WeightsError(
        'format',
        `readout: row ${row} gives a logit that is not a finite number; the checkpoint holds NaN or infinite weights, or weights of another model`,
      )
    results[row]![slot] = values
  })
}

function checkKept(rows: readonly Row[]): void {
  const continued = new Set(rows.map(({ after }) => after?.slot))
  const wrong = rows.findIndex(({ keep }) => keep && continued.has(keep.slot))
  if (wrong >= 0)
    throw new ShapeError(
      `logits: row ${wrong} keeps its state in slot ${rows[wrong]!.keep!.slot}, which a row of this call continues; keep it in another`,
    )
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
