import { untilAborted } from '../../device/abort.ts'
import type { Device } from '../../device/device.ts'
import { DeviceError } from '../../errors.ts'
import { Graph } from '../../graph/graph.ts'
import type { LinearPlan } from '../../graph/target.ts'
import { plainPlan } from '../linear.ts'
import { checker } from './checker.ts'
import { randomOperands } from './operands.ts'
import { type MatrixProduct, misfit, planName, recordProduct } from './product.ts'
import { type Clock, clockOf, median, type Timer, timer } from './timer.ts'

/** A plan with one tile, and what is known of it so far. */
export interface Contestant {
  readonly name: string
  readonly plan: LinearPlan
  /** At each height; infinite until it was timed, and where it failed. */
  ms: readonly number[]
  failure?: string
}

export interface ContestOptions {
  /** Rows of a run, ascending. */
  readonly heights: readonly number[]
  /** Work before a plan is timed, so that the clock of the device is up. */
  readonly warmMs: number
  readonly signal?: AbortSignal | undefined
  /** Called as plans are compiled, tried and measured. */
  readonly onStep?: ((phase: Phase, done: number, total: number) => void) | undefined
}
export type Phase = 'compiling' | 'trying' | 'measuring'

/** Plans of one product against each other, on one device, over the same operands. A plan that fails drops out. */
export interface Contest {
  readonly clock: Clock
  fits(plan: LinearPlan): boolean
  /** Compiles all plans at once, then times each a few times, back to back. */
  enter(plans: readonly LinearPlan[]): Promise<Contestant[]>
  /** Compares the numbers with the plain kernel's. */
  check(contestants: readonly Contestant[]): Promise<void>
  /** Times each properly: twice, the second time in the opposite order, of which the better counts. */
  measure(contestants: readonly Contestant[]): Promise<void>
  release(): void
}

const FEW = 4
const MANY = 24
/** Repeats of a step are fewer where they would take longer, and enough for a median. */
const LONGEST_MS = 20

export async function contest(device: Device, product: MatrixProduct, options: ContestOptions): Promise<Contest> {
  const { heights, warmMs, signal, onStep } = options
  const top = heights.at(-1)!
  const operands = await randomOperands(device, product, top)
  const { weights } = operands
  const timerOf = (plan: LinearPlan, repeats: number, clock: Clock): Promise<Timer> =>
    timer(device, {
      before: operands.x,
      step: (graph, x, i) => recordProduct(graph, product, x, weights[i % weights.length]!, plan),
      ...{ repeats, clock, signal },
    })
  let clock: Clock
  try {
    clock = await clockOf(device, (clock) => timerOf(plainPlan, MANY, clock))
  } catch (error) {
    operands.release()
    throw error
  }

  /** Does something with a contestant that it may fail at. */
  async function attempt(c: Contestant, work: () => Promise<void>): Promise<void> {
    if (c.failure !== undefined) return
    try {
      signal?.throwIfAborted()
      await work()
    } catch (error) {
      if (!isOfPlan(error)) throw error
      c.failure = error.message.split('\n')[0]!
      c.ms = heights.map(() => Number.POSITIVE_INFINITY)
    }
  }

  /** Compiles, does a round over all in this order, and again if there is another, and cleans up. */
  async function timeAll(
    contestants: readonly Contestant[],
    phase: Phase,
    repeats: (c: Contestant) => number,
    rounds: readonly ((all: Contestant[]) => Contestant[])[],
    ms: number,
  ): Promise<void> {
    const timers = new Map<Contestant, Timer>()
    let compiled = 0
    const compile = contestants.map((c) =>
      attempt(c, async () => {
        timers.set(c, await timerOf(c.plan, repeats(c), clock))
        onStep?.('compiling', ++compiled, contestants.length)
      }),
    )
    const found = new Map(contestants.map((c) => [c, heights.map(() => Number.POSITIVE_INFINITY)]))
    const total = rounds.length * contestants.length
    let done = 0
    try {
      const failed = (await untilAborted(Promise.allSettled(compile), signal)).find((r) => r.status === 'rejected')
      if (failed) throw failed.reason
      const [first] = timers.values()
      await first?.warm(top, 2 * warmMs) // compiling was a pause
      for (const order of rounds) {
        for (const c of order([...contestants])) {
          await attempt(c, async () => {
            const watch = timers.get(c)!
            await watch.warm(top, ms)
            for (let h = heights.length - 1; h >= 0; h--) {
              const time = Math.max(median(await watch.time(heights[h]!)), LEAST_MS)
              found.get(c)![h] = Math.min(found.get(c)![h]!, time)
            }
          })
          onStep?.(phase, ++done, total)
        }
      }
    } finally {
      for (const t of timers.values()) t.dispose()
    }
    for (const c of contestants) if (c.failure === undefined) c.ms = found.get(c)!
  }

  const inOrder = (all: Contestant[]): Contestant[] => all
  const graph = new Graph(device.target)
  const x = operands.x(graph, graph.input('ids', ['T'], 'u32'))
  return {
    clock,
    fits: (plan) => misfit(graph, product, x, weights[0]!, plan) === undefined,
    async enter(plans) {
      const entered = plans.map((plan): Contestant => {
        return { name: planName(plan), plan, ms: heights.map(() => Number.POSITIVE_INFINITY) }
      })
      await timeAll(entered, 'trying', () => FEW, [inOrder], 0)
      return entered
    },
    async check(contestants) {
      const wrong = await checker(device, product, operands, { rows: Math.min(top, CHECKED), signal })
      for (const c of contestants) {
        await attempt(c, async () => {
          const reason = await wrong(c.plan)
          if (reason) throw new DeviceError('validation', reason)
        })
      }
    },
    async measure(contestants) {
      const repeats = ({ ms }: Contestant): number =>
        Math.max(FEW, Math.min(MANY, Math.round(LONGEST_MS / ms.at(-1)!) || FEW))
      await timeAll(contestants, 'measuring', repeats, [inOrder, (all) => all.reverse()], warmMs)
    },
    release: operands.release,
  }
}
/** A tile of 128 rows, and a few of the next one. */
const CHECKED = 131
/** No timestamp tells less apart. */
const LEAST_MS = 1e-4

/** What one plan cannot do says nothing of the others; a device that is lost or full does. */
export const isOfPlan = (error: unknown): error is DeviceError =>
  error instanceof DeviceError && ['shader', 'validation', 'limit'].includes(error.code)
