// How times are taken, here and in bench/.

/** One of the things compared. */
export interface Case {
  readonly name: string
  run(): Promise<unknown>
}

export type Timing = {
  readonly case: string
  readonly medianMs: number
  readonly minMs: number
  readonly maxMs: number
  readonly runs: number
  readonly timesMs: readonly number[]
}

export interface Rounds {
  readonly warmups: number
  readonly runs: number
}

/** Times the cases in turn, round after round, so that drift of the machine meets all of them alike. */
export async function interleave(
  cases: readonly Case[],
  { warmups, runs }: Rounds,
  onRound: (round: number) => void = () => {},
): Promise<Timing[]> {
  const times = cases.map((): number[] => [])
  for (let round = -warmups; round < runs; round++) {
    onRound(round) // below 0: warming up
    for (const [i, { run }] of cases.entries()) {
      const start = performance.now()
      await run()
      if (round >= 0) times[i]!.push(performance.now() - start)
    }
  }
  return times.map((ms, i) => ({ case: cases[i]!.name, ...summary(ms), timesMs: ms }))
}

export function summary(ms: readonly number[]): Omit<Timing, 'case' | 'timesMs'> {
  return { medianMs: median(ms), minMs: Math.min(...ms), maxMs: Math.max(...ms), runs: ms.length }
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}
