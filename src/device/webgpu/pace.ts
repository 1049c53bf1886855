export interface Pace {
  /** Cuts a run's dispatches into submits. */
  pieces(costs: readonly { flops: number; bytes: number }[]): { from: number; to: number }[]
  /** The whole time of the last run. */
  learn(ms: number): void
}

const FIRST = 24 // about two layers: the GPU starts while the rest is encoded
const LONGEST_MS = 100

/** Estimates from counted work how long dispatches take, and corrects itself by the runs it sees. */
export function pace(software: boolean): Pace {
  let flopsPerMs = software ? 1e6 : 1e9
  let bytesPerMs = software ? 2e6 : 1e8
  let estimate = 0
  return {
    pieces(costs) {
      const pieces: { from: number; to: number }[] = []
      let [from, ms] = [0, 0]
      estimate = 0
      costs.forEach(({ flops, bytes }, i) => {
        const cost = Math.max(flops / flopsPerMs, bytes / bytesPerMs)
        estimate += cost
        ms += cost
        const full = ms > LONGEST_MS || (pieces.length === 0 && i + 1 === FIRST)
        if (!full && i + 1 < costs.length) return
        pieces.push({ from, to: i + 1 })
        from = i + 1
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
