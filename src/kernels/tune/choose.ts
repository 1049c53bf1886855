import type { LinearPlan } from '../../graph/target.ts'

/** A plan with one tile, and its milliseconds at each of the heights; infinite where it failed. */
export interface Timed {
  readonly plan: LinearPlan
  readonly ms: readonly number[]
}

/** A further tile of a rule has to earn so much at one height: each is one more pipeline to compile. */
const TILE_EARNS = Math.log(1.03)
/** Less than this in the mean over the heights is noise, and no reason to leave the plan that is there. */
const PLAN_EARNS = Math.log(1.01)

/**
 * The plan that is best over all heights (rows of a run, ascending). What the order of a sum depends on may not change
 * with the height, so the order is the one whose best tiles have the least product of times over the heights; then
 * each stretch of heights has its best tile. Undefined where at some height nothing ran.
 */
export function choosePlan(heights: readonly number[], timed: readonly Timed[]): LinearPlan | undefined {
  const best = heights.map((_, h) => Math.min(...timed.map(({ ms }) => ms[h]!)))
  if (timed.length === 0 || !best.every(Number.isFinite)) return undefined
  const byOrder = new Map<string, Timed[]>()
  for (const t of timed) byOrder.set(orderOf(t.plan), [...(byOrder.get(orderOf(t.plan)) ?? []), t])
  const [first, ...others] = [...byOrder.values()].map((group) => bestStretches(group, best))
  const { loss, stretches } = others.reduce((a, b) => (b.loss < a.loss ? b : a), first!)
  if (!Number.isFinite(loss)) return undefined
  const { variant, order } = stretches[0]!.plan
  return {
    variant,
    order,
    heights: stretches.map(({ plan, end }) => {
      const upTo = end === heights.length ? undefined : between(heights[end - 1]!, heights[end]!)
      return { ...(upTo !== undefined && { upTo }), tile: plan.heights[0]!.tile }
    }),
  }
}

/** Is a plan with these times worth leaving one with those for? By the mean over the heights. */
export function isWorth(ms: readonly number[], instead: readonly number[]): boolean {
  const earned = ms.reduce((sum, t, h) => sum + Math.log(instead[h]! / t), 0)
  return earned > PLAN_EARNS * ms.length
}

/** The geometric mean of the ratios of two plans' times: how often the second goes into the first. */
export const meanRatio = (ms: readonly number[], of: readonly number[]): number =>
  Math.exp(ms.reduce((sum, t, h) => sum + Math.log(of[h]! / t), 0) / ms.length)

/** Runs of heights [from, end) that share a tile, and what they lose to the best times, as a sum of logarithms. */
interface Stretches {
  readonly loss: number
  readonly stretches: readonly { readonly plan: LinearPlan; readonly end: number }[]
}

/** Of plans with one order: the cheapest way to cut the heights into stretches of one tile each. */
function bestStretches(group: readonly Timed[], best: readonly number[]): Stretches {
  const upTo: Stretches[] = [{ loss: 0, stretches: [] }]
  for (let end = 1; end <= best.length; end++) {
    let least: Stretches = { loss: Number.POSITIVE_INFINITY, stretches: [] }
    for (let from = 0; from < end; from++) {
      const before = upTo[from]!
      for (const { plan, ms } of group) {
        let loss = before.loss + (from > 0 ? TILE_EARNS : 0)
        for (let h = from; h < end; h++) loss += Math.log(ms[h]! / best[h]!)
        if (loss < least.loss) least = { loss, stretches: [...before.stretches, { plan, end }] }
      }
    }
    upTo.push(least)
  }
  return upTo.at(-1)!
}

/** Where one tile gives way to the next: halfway by ratio between two heights that were measured. */
const between = (a: number, b: number): number => Math.floor(Math.sqrt(a * b))

const orderOf = ({ variant, order }: LinearPlan): string =>
  JSON.stringify([variant, Object.entries(order).sort(([a], [b]) => (a < b ? -1 : 1))])
