import { type Decider, type Device, loadDecider, type Profile } from '../../src/index.ts'
import { type Arm, arms } from './arms.ts'
import { type Watch, watched } from './devices.ts'
import type { ModelRef } from './models.ts'
import { sourceOf } from './sources.ts'
import { interleave, type Rounds, summary, type Timing } from './timing.ts'

/** A request from beginning to end, or all dispatches of one kernel in it. */
export interface BenchmarkRow extends Omit<Timing, 'case' | 'timesMs'> {
  readonly part: 'request' | 'kernel'
  readonly arm: Arm
  readonly case: string
  readonly dispatches: number
  /** Requests: the first one, with what was compiled for it. */
  readonly coldMs?: number
}

export interface BenchmarkResult {
  readonly bench: 'browser'
  readonly device: string
  readonly adapter: string
  readonly software: boolean
  readonly dtype: string
  readonly features: readonly string[]
  readonly disabled: readonly string[]
  readonly commit: string
  readonly versions: { readonly pronounce: string; readonly browser: string }
  readonly checkpoint: string
  readonly date: string
  readonly warmups: number
  readonly runs: number
  /** Between arms, of any probability. */
  readonly largestDifference: number
  readonly arms: readonly { readonly arm: Arm; readonly loadMs: number; readonly disabled: readonly string[] }[]
  readonly rows: readonly BenchmarkRow[]
}

declare const __COMMIT__: string // set by the build, as the version is
declare const __VERSION__: string

const question = { question: 'Which department should handle this?', options: ['billing', 'technical', 'sales'] }
const sentence = 'My card was charged twice for the same purchase, and nobody has answered my letters so far. '
const texts: Readonly<Record<string, string>> = { short: sentence.trim(), long: sentence.repeat(4).trim() }

interface Candidate {
  readonly arm: Arm
  readonly decider: Decider
  readonly watch: Watch
  readonly loadMs: number
}

/** The same requests through three sets of kernels, in turn, so that drift meets all alike; then once more profiled. */
export async function runBenchmark(
  device: Device,
  ref: ModelRef,
  { warmups, runs }: Rounds,
  { signal, onStep }: { signal: AbortSignal; onStep: (step: string) => void },
): Promise<BenchmarkResult> {
  const candidates: Candidate[] = []
  try {
    for (const arm of Object.keys(arms) as Arm[]) {
      onStep(`loading for ${arm}`)
      const begin = performance.now()
      const watch = watched(device, arms[arm])
      const decider = await loadDecider(
        sourceOf(ref.where, () => {}),
        { device: watch.device, signal },
      )
      candidates.push({ arm, decider, watch, loadMs: performance.now() - begin })
    }
    const cases = Object.keys(texts).flatMap((name) => candidates.map((candidate) => ({ name, ...candidate })))
    const answers = new Map<string, readonly number[]>()
    const ask = async ({ name, arm, decider, watch }: (typeof cases)[number]): Promise<number> => {
      const begin = performance.now()
      watch.begin()
      const { answers: all } = await decider.decidePacked(texts[name]!, [question], { signal })
      answers.set(`${name} ${arm}`, all[0]!.probsList)
      return performance.now() - begin
    }
    const dispatches: number[] = []
    const cold: number[] = []
    for (const each of cases) {
      onStep(`first run of ${each.arm}, ${each.name}`)
      cold.push(await ask(each))
      dispatches.push(each.watch.dispatches())
    }
    const warm = await interleave(
      cases.map((each) => ({ name: `${each.name} ${each.arm}`, run: () => ask(each) })),
      { warmups, runs },
      (round) => onStep(round < 0 ? 'warming up' : `round ${round + 1} of ${runs}`),
    )
    const requests = cases.map(
      ({ arm, name }, i): BenchmarkRow => ({
        ...warm[i]!,
        ...{ part: 'request', arm, case: name, coldMs: cold[i]!, dispatches: dispatches[i]! },
      }),
    )
    const kernels: BenchmarkRow[] = []
    for (const each of cases.filter(({ name }) => name === 'long')) {
      onStep(`kernels of ${each.arm}`)
      kernels.push(...(await profile(each.arm, each.watch, runs, () => ask(each))))
    }
    const { name: adapter, kind, software, dtype, features, disabled } = device.report
    return {
      ...{ bench: 'browser', device: kind, adapter, software, dtype, features },
      disabled: disabled.map(({ variant }) => variant),
      commit: __COMMIT__,
      versions: { pronounce: __VERSION__, browser: navigator.userAgent },
      ...{ checkpoint: ref.title, date: new Date().toISOString(), warmups, runs },
      largestDifference: Math.max(
        ...Object.keys(texts).map((name) => spread(candidates.map(({ arm }) => answers.get(`${name} ${arm}`)!))),
      ),
      arms: candidates.map(({ arm, loadMs }) => ({ arm, loadMs, disabled: arms[arm] })),
      rows: [...requests, ...kernels],
    }
  } finally {
    for (const { decider } of candidates) await decider.dispose()
  }
}

/** Times of kernels by name; none on a GPU that tells no times. */
async function profile(arm: Arm, watch: Watch, runs: number, ask: () => Promise<unknown>): Promise<BenchmarkRow[]> {
  const times = new Map<string, { dispatches: number; ms: number[] }>()
  for (let run = 0; run < runs; run++) {
    const sums = new Map<string, { dispatches: number; ms: number }>()
    watch.onProfile = ({ dispatches }: Profile) => {
      for (const { kernel, ms } of dispatches) {
        const sum = sums.get(kernel) ?? { dispatches: 0, ms: 0 }
        sums.set(kernel, { dispatches: sum.dispatches + 1, ms: sum.ms + ms })
      }
    }
    await ask().finally(() => {
      watch.onProfile = undefined
    })
    for (const [kernel, { dispatches, ms }] of sums)
      times.set(kernel, { dispatches, ms: [...(times.get(kernel)?.ms ?? []), ms] })
  }
  return [...times].map(([kernel, { dispatches, ms }]) => ({
    part: 'kernel',
    arm,
    case: kernel,
    dispatches,
    ...summary(ms),
  }))
}

/** The largest difference of any number between lists. */
const spread = (lists: readonly (readonly number[])[]): number =>
  Math.max(...lists[0]!.map((_, i) => Math.max(...lists.map((p) => p[i]!)) - Math.min(...lists.map((p) => p[i]!))))
