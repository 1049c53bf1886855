/** Dispatches that are submitted together, and how long they are thought to take. */
export interface Piece {
  readonly from: number
  readonly to: number
  readonly ms: number
}

export interface Pace {
  /** Cuts a run's dispatches into submits; one that nobody waits for has others before it, and need not start early. */
  pieces(costs: readonly { flops: number; bytes: number }[], waited: boolean): Piece[]
  /** The whole time of the last run. */
  learn(ms: number): void
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
  let estimate = 0
  return {
    pieces(costs, waited) {
      const pieces: Piece[] = []
      let [start, ms] = [0, 0]
      estimate = 0
      costs.forEach(({ flops, bytes }, i) => {
        const cost = Math.max(flops / flopsPerMs, bytes / bytesPerMs)
        estimate += cost
        ms += cost
        const full = ms > LONGEST_MS || (waited && i + 1 - start === FIRST[pieces.length])
        if (!full && i + 1 < costs.length) return
        pieces.push({ from: start, to: i + 1, ms })
        start = i + 1
        ms = 0
      })
      return pieces
    },
    learn(ms) {
      if (!(estimate > 1)) return // too short to tell the work from the way
      const ratio = Math.min(2, Math.max(0.5, estimate / ms))
      flopsPerMs *= ratio
      bytesPerMs *= ratio
    },
  }
}
