import type { Device } from '../../device/device.ts'
import { DeviceError } from '../../errors.ts'
import { Graph } from '../../graph/graph.ts'
import type { LinearPlan, LinearRule } from '../../graph/target.ts'
import { tensor } from '../../graph/tensor.ts'
import { linearCandidates, partsIn, slicesIn } from '../lib/linear_tiles.ts'
import { plainPlan } from '../linear.ts'
import { adderCost } from './adder.ts'
import { choosePlan, isWorth } from './choose.ts'
import { type Contestant, type ContestOptions, contest } from './contest.ts'
import { type MatrixProduct, pickedPlan, planAt, planName } from './product.ts'

/** What was found for a product. */
export interface Tuned {
  readonly product: MatrixProduct
  readonly rule: LinearRule
  /** Is the rule the plan of the built-in table, because nothing was better? */
  readonly builtin: boolean
  readonly heights: readonly TunedHeight[]
  /** Plans that were compiled and timed, and those of them that failed. */
  readonly tried: number
  readonly failed: readonly { readonly plan: string; readonly reason: string }[]
  /** Variants that took over twice the best time at every height. */
  readonly slow: readonly LinearPlan['variant'][]
}

export interface TunedHeight {
  readonly rows: number
  readonly plan: string
  /** Of a product, with what its parts cost whoever adds them. */
  readonly ms: number
  readonly builtinPlan: string
  readonly builtinMs: number
}

export interface TuneProductOptions extends ContestOptions {
  /** So many plans of each height are measured to the end. */
  readonly most: number
  /** Variants that were slow for another product; their plans are tried only where the built-in table has them. */
  readonly slow: ReadonlySet<LinearPlan['variant']>
}

const SPLITS = [2, 4]

/** Finds the best plan of one product. Plans are tried briefly at first; only the best are split and measured. */
export async function tuneProduct(device: Device, product: MatrixProduct, options: TuneProductOptions): Promise<Tuned> {
  const { heights, most, slow } = options
  const { on, plan: builtin } = builtinPlan(device, product)
  const builtins = heights.map((rows) => planAt(builtin, rows))
  const race = await contest(device, product, options)
  try {
    const { clock } = race
    const splits = product.use === 'parts' ? [...new Set([...SPLITS, ...builtins.map(partsIn)])] : []
    const extra = splits.length ? await adderCost(device, product.N, splits, { ...options, clock }) : new Map()
    const total = ({ plan, ms }: Contestant): number[] => ms.map((t, h) => t + (extra.get(partsIn(plan))?.[h] ?? 0))
    const best = (all: readonly Contestant[]) =>
      bestOf(
        all.map((c) => ({ c, ms: total(c) })),
        most,
      )

    const unsplit = linearCandidates.filter((plan) => partsIn(plan) === 1 && !slow.has(plan.variant))
    const plans = distinct([...unsplit, plainPlan, ...builtins])
    const tried = await race.enter(plans.filter(race.fits))
    const split = best(tried).flatMap(({ plan: { variant, order, heights } }) =>
      splits.map((parts) => ({ variant, order: { ...order, SK: parts * slicesIn(heights[0]!.tile) }, heights })),
    )
    const known = new Set(tried.map(({ name }) => name))
    tried.push(...(await race.enter(distinct(split).filter((plan) => race.fits(plan) && !known.has(planName(plan))))))

    const names = new Set(builtins.map(planName))
    const finalists = [...new Set([...best(tried), ...tried.filter(({ name }) => names.has(name))])]
    await race.check(finalists)
    await race.measure(finalists)

    const timed = finalists.map((c) => ({ plan: c.plan, ms: total(c) }))
    const found = choosePlan(heights, timed)
    if (!found) throw new DeviceError('shader', `tune: no plan ran at all of ${heights} rows`)
    const at = (plan: LinearPlan): number[] =>
      heights.map((rows, h) => timed.find((t) => planName(t.plan) === planName(planAt(plan, rows)))!.ms[h]!)
    const keeps = !isWorth(at(found), at(builtin))
    const { variant, order, heights: tiles } = keeps ? builtin : found
    const rule: LinearRule = { on, N: product.N, K: product.K, variant, order, heights: tiles }
    const [ms, builtinMs] = [at(rule), at(builtin)]
    return {
      product,
      rule,
      builtin: keeps,
      heights: heights.map((rows, h) => ({
        rows,
        plan: planName(planAt(rule, rows)),
        ms: ms[h]!,
        builtinPlan: planName(builtins[h]!),
        builtinMs: builtinMs[h]!,
      })),
      tried: tried.length,
      failed: tried.flatMap(({ name, failure }) => (failure === undefined ? [] : [{ plan: name, reason: failure }])),
      slow: slowOf(tried),
    }
  } finally {
    race.release()
  }
}

/** What the device would take without a tuning, as it takes it: a sum that nobody adds up is in one part. */
function builtinPlan({ target }: Device, product: MatrixProduct): { on: LinearRule['on']; plan: LinearPlan } {
  const { tuning: _, ...bare } = target
  const graph = new Graph(bare)
  const { operand, matrix } = target
  const x = graph.input('x', ['T', product.K], operand)
  const format = operand === 'f16' ? 'f16' : 'bf16'
  const w = tensor({ label: 'w', shape: [product.N, product.K], format, place: 'kept' })
  const on = operand === 'f32' ? 'f32' : matrix ? 'matrix' : 'f16'
  return { on, plan: pickedPlan(graph, product, x, w) }
}

/** The best so many at each height, of those that ran at all. */
function bestOf(
  all: readonly { readonly c: Contestant; readonly ms: readonly number[] }[],
  most: number,
): Contestant[] {
  const ran = all.filter(({ ms }) => ms.every(Number.isFinite))
  const [first] = ran
  const perHeight = (first?.ms ?? []).flatMap((_, h) => [...ran].sort((a, b) => a.ms[h]! - b.ms[h]!).slice(0, most))
  return [...new Set(perHeight.map(({ c }) => c))]
}

function slowOf(tried: readonly Contestant[]): LinearPlan['variant'][] {
  const variants = [...new Set(tried.map(({ plan }) => plan.variant))]
  const best = (all: readonly Contestant[], h: number): number => Math.min(...all.map(({ ms }) => ms[h]!))
  return variants.filter((variant) => {
    const own = tried.filter(({ plan }) => plan.variant === variant)
    return tried[0]!.ms.every((_, h) => best(own, h) > 2 * best(tried, h))
  })
}

const distinct = (plans: readonly LinearPlan[]): LinearPlan[] => [
  ...new Map(plans.map((plan) => [planName(plan), plan])).values(),
]
