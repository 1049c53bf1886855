import type { Cost } from '../../graph/kernel.ts'

/** Dispatches that are submitted together, and how long they are thought to take. */
export interface Piece<Job> {
  readonly jobs: readonly Job[]
  readonly ms: number
  readonly isLast: boolean
}

export interface Pace {
  /**
   * Cuts a run's dispatches into submits, as they come; one that nobody waits for has others before it, and need not
   * start early.
   */
  pieces<Job extends { readonly cost: Cost }>(jobs: Iterable<Job>, waited: boolean): Iterable<Piece<Job>>
  /** How long a run took, and how long its pieces were thought to. */
  learn(ms: number, thoughtMs: number): void
}

/** Dispatches of the first pieces: the GPU starts early and never waits for the next one to be encoded. */
const FIRST = [16, 32, 64]
const LONGEST_MS = 100
/** Work that may wait on the GPU when more is submitted: an abort takes about so long. */
export const AHEAD_MS = LONGEST_MS

/** Estimates from counted work how long dispatches take, and corrects itself by the runs it sees. */
export function pace(software: boolean): Pace {
  let flopsPerMs = software ? 1e6 : 1e9
  let bytesPerMs = software ? 2e6 : 1e8
  return {
    *pieces<Job extends { readonly cost: Cost }>(jobs: Iterable<Job>, waited: boolean): Iterable<Piece<Job>> {
      let [piece, ms, before]: [Job[], number, number] = [[], 0, 0]
      for (const job of jobs) {
        if (ms > LONGEST_MS || (waited && piece.length === FIRST[before])) {
          yield { jobs: piece, ms, isLast: false }
          ;[piece, ms] = [[], 0]
          before++
        }
        const { flops, bytes } = job.cost
        piece.push(job)
        ms += Math.max(flops / flopsPerMs, bytes / bytesPerMs)
      }
      yield { jobs: piece, ms, isLast: true }
    },
    learn(ms, thoughtMs) {
      if (!(thoughtMs > 1)) return // too short to tell the work from the way
      const ratio = Math.min(2, Math.max(0.5, thoughtMs / ms))
      flopsPerMs *= ratio
      bytesPerMs *= ratio
    },
  }
}
