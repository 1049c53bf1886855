import type { Device } from '../src/device/device.ts'
import { linearCandidates } from '../src/kernels/lib/linear_tiles.ts'
import { type Contestant, contest } from '../src/kernels/tune/contest.ts'
import { type MatrixProduct, planName } from '../src/kernels/tune/product.ts'
import type { BenchOptions } from './bench.ts'
import type { Gemm } from './gemm.ts'
import type { Row } from './measure.ts'

const WARM_MS = 30

/**
 * Every plan that fits, for every product and height, as `tune` measures its best: fastest first. A plan that splits
 * the sum leaves its parts to whoever adds them, and its time is without that. One that fails says why and the rest go
 * on.
 */
export async function sweepLinear(
  device: Device,
  gemms: readonly Gemm[],
  { plan: wanted }: Pick<BenchOptions, 'plan'>,
  note: (line: string) => void,
): Promise<Row[]> {
  const rows: Row[] = []
  for (const [product, heights] of grouped(gemms)) {
    const race = await contest(device, product, { heights, warmMs: WARM_MS })
    try {
      const plans = linearCandidates.filter((plan) => planName(plan).startsWith(wanted) && race.fits(plan))
      const all = await race.enter(plans)
      await race.check(all)
      await race.measure(all)
      for (const [h, M] of heights.entries()) {
        const tried = [...all].sort((a, b) => a.ms[h]! - b.ms[h]!).map((c) => rowOf({ ...product, M }, c, h))
        rows.push(...tried)
        const [best] = tried
        const told = best?.medianMs ? `${best.plan}, ${Number(best.tflopsPerSecond).toFixed(1)} TFLOP/s` : 'none'
        note(`${product.N} x ${product.K}, ${M} rows: ${plans.length} plans fit, best ${told}`)
      }
    } finally {
      race.release()
    }
  }
  return rows
}

function rowOf(
  { name, M, N, K }: Gemm,
  { name: plan, plan: { order, heights }, ms, failure }: Contestant,
  h: number,
): Row {
  const told = { case: `${name}, ${M} x ${N} x ${K}`, plan, order, tile: heights[0]!.tile }
  if (failure !== undefined) return { ...told, error: failure }
  return { ...told, medianMs: ms[h]!, tflopsPerSecond: (2 * M * N * K) / ms[h]! / 1e9 }
}

/** Products of one shape and use share their weights and pipelines; the heights of each, ascending. */
function grouped(gemms: readonly Gemm[]): [MatrixProduct, number[]][] {
  const groups = new Map<string, { product: MatrixProduct; heights: Set<number> }>()
  for (const { M, ...product } of gemms) {
    const key = `${product.N} x ${product.K} ${product.use}`
    const group = groups.get(key) ?? { product, heights: new Set() }
    group.heights.add(M)
    groups.set(key, group)
  }
  return [...groups.values()].map(({ product, heights }) => [product, [...heights].sort((a, b) => a - b)])
}
