import type { Device } from '../src/device/device.ts'
import { Graph } from '../src/graph/graph.ts'
import type { LinearPlan } from '../src/graph/target.ts'
import { linearCandidates } from '../src/kernels/lib/linear_tiles.ts'
import { linearMisfit, recordLinear } from '../src/kernels/linear.ts'
import type { BenchOptions } from './bench.ts'
import { type Gemm, streamedWeights, timeGemm } from './gemm.ts'
import type { Row } from './measure.ts'

/**
 * Every plan that fits, for every product: fastest first. A plan that splits the sum leaves its parts to whoever adds
 * them, and its time is without that. One that fails says why and the rest go on.
 */
export async function sweepLinear(
  device: Device,
  gemms: readonly Gemm[],
  { plan: wanted, warmups, runs }: BenchOptions,
  note: (line: string) => void,
): Promise<Row[]> {
  const rows: Row[] = []
  for (const [shape, group] of grouped(gemms)) {
    const weights = await streamedWeights(device, group[0]!)
    for (const gemm of group) {
      const graph = new Graph(device.target)
      const x = graph.input('x', ['T', gemm.K], device.target.operand)
      const fits = (plan: LinearPlan) => name(plan).startsWith(wanted) && !linearMisfit(x, weights[0]!, plan)
      const plans = linearCandidates.filter(fits)
      const tried: Row[] = []
      for (const plan of plans) tried.push(await attempt(device, gemm, weights, plan, { warmups, runs }))
      const speed = (row: Row): number => Number(row.tflopsPerSecond ?? 0)
      tried.sort((a, b) => speed(b) - speed(a))
      rows.push(...tried)
      const [best] = tried
      const told = best ? `${best.plan}, ${speed(best).toFixed(1)} TFLOP/s` : 'none'
      note(`${shape}, ${gemm.M} rows: ${plans.length} plans fit, best ${told}`)
    }
    for (const w of weights) device.release(w)
  }
  return rows
}

async function attempt(
  device: Device,
  gemm: Gemm,
  weights: Parameters<typeof timeGemm>[2],
  plan: LinearPlan,
  rounds: { warmups: number; runs: number },
): Promise<Row> {
  const told = { plan: name(plan), order: plan.order, tile: plan.heights[0]!.tile }
  try {
    return { ...told, ...(await timeGemm(device, gemm, weights, rounds, (x, w) => recordLinear(x, w, plan))) }
  } catch (error) {
    return { case: `${gemm.name}, ${gemm.M} x ${gemm.N} x ${gemm.K}`, ...told, error: String(error) }
  }
}

const name = ({ variant, order, heights }: LinearPlan): string =>
  [variant, ...Object.entries({ ...order, ...heights[0]!.tile }).map(([key, value]) => `${key}${value}`)].join(' ')

/** Products of one shape share their weights, and equal ones are tried once. */
function grouped(gemms: readonly Gemm[]): Map<string, Gemm[]> {
  const groups = new Map<string, Gemm[]>()
  for (const g of gemms) {
    const key = `${g.N} x ${g.K}`
    const group = groups.get(key) ?? []
    if (!group.some(({ M }) => M === g.M)) group.push(g)
    groups.set(key, group)
  }
  return groups
}
