import { loadDecider } from '../src/apps/decider/load.ts'
import type { Decider } from '../src/apps/decider/api.ts'
import { CONTEXTS, DEPARTMENT } from '../src/apps/decider/verify.ts'
import { arms } from '../demo/engine/arms.ts'
import type { Bench } from './bench.ts'
import { identify } from './checkpoint.ts'
import { watched, without } from './devices.ts'
import { type Case, interleave, median, origin } from './measure.ts'

const LEAST_WARMUPS = 2
const LEAST_RUNS = 5

/** The same requests through three sets of kernels, interleaved in one process: how fast, and how far apart. */
export const armsBench: Bench = async (device, { model, revision, warmups, runs }, note) => {
  const rounds = { warmups: Math.max(LEAST_WARMUPS, warmups), runs: Math.max(LEAST_RUNS, runs) }
  const loaded = await Promise.all(
    Object.entries(arms).map(async ([arm, disabled]) => {
      const { device: own, lastRun } = watched(without(device, [], disabled))
      return { arm, disabled, lastRun, decider: await loadDecider(model, { device: own }) }
    }),
  )
  const answers = new Map<string, readonly number[]>()
  const key = (arm: string, text: string) => `${arm}: ${text}`
  const ask = async (arm: string, decider: Decider, text: string) => {
    const { answers: all } = await decider.decidePacked(text, [DEPARTMENT])
    answers.set(key(arm, text), all[0]!.probsList)
  }
  const pairs = CONTEXTS.flatMap((text) => loaded.map(({ arm, decider }) => ({ text, arm, decider })))
  const timings = await interleave(
    pairs.map(({ arm, decider, text }): Case => ({ name: key(arm, text), run: () => ask(arm, decider, text) })),
    rounds,
  )
  const rows = pairs.map(({ arm, text }, i) => ({
    arm,
    text,
    ...timings[i]!,
    probabilities: Object.fromEntries(DEPARTMENT.options.map((o, j) => [o, answers.get(key(arm, text))![j]!])),
  }))
  const largestDifference = Math.max(
    ...CONTEXTS.flatMap((text) => {
      const all = loaded.map(({ arm }) => answers.get(key(arm, text))!)
      return DEPARTMENT.options.map((_, j) => spread(all.map((p) => p[j]!)))
    }),
  )
  note(`largest difference between arms: ${largestDifference.toExponential(2)}`)
  for (const { decider } of loaded) await decider.dispose()
  return {
    bench: 'arms',
    ...origin(device),
    checkpoint: await identify(model, revision),
    ...rounds,
    arms: loaded.map(({ arm, disabled, lastRun }) => {
      const times = rows.flatMap((row) => (row.arm === arm ? row.timesMs : []))
      const kernels = [...new Set(lastRun())].sort()
      return { arm, medianMs: median(times), kernels, disabled, dispatches: lastRun().length }
    }),
    largestDifference,
    rows,
  }
}

const spread = (values: readonly number[]): number => Math.max(...values) - Math.min(...values)
