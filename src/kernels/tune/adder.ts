import type { Device } from '../../device/device.ts'
import { embedding } from '../embedding.ts'
import { addRmsNorm } from '../rms_norm.ts'
import { fillAll } from './operands.ts'
import { type Clock, median, timer } from './timer.ts'

const REPEATS = 24

export interface AdderOptions {
  readonly heights: readonly number[]
  readonly clock: Clock
  readonly warmMs: number
  readonly signal?: AbortSignal | undefined
}

/**
 * What a sum in so many parts costs the add_rms_norm that reads them, in milliseconds at each height: how much longer
 * it takes over them than over one [rows, width].
 */
export async function adderCost(
  device: Device,
  width: number,
  splits: readonly number[],
  { heights, clock, warmMs, signal }: AdderOptions,
): Promise<ReadonlyMap<number, readonly number[]>> {
  const top = heights.at(-1)!
  const x = device.keep('residual', [top, width], 'f32')
  const parts = [...new Set([1, ...splits])].map((count) => ({
    count,
    table: device.keep(`${count} parts`, [top, count * width], 'f32'),
  }))
  const w = device.keep('norm', [width], 'f32')
  const times = new Map<number, readonly number[]>()
  try {
    await fillAll(device, [
      { t: x, high: 1 },
      { t: w, high: 0.1 },
      ...parts.map(({ table }) => ({ t: table, high: 1 })),
    ])
    for (const { count, table } of parts) {
      const watch = await timer(device, {
        before: (_, ids) => [embedding(ids, x), embedding(ids, table)] as const,
        step: (graph, [x, parts]) => addRmsNorm(x, parts, w, { eps: 1e-6, offset: 1, format: graph.target.operand }),
        ...{ repeats: REPEATS, clock, signal },
      })
      const ms: number[] = heights.map(() => 0)
      try {
        await watch.warm(top, warmMs)
        for (const [h, rows] of heights.entries()) ms[h] = median(await watch.time(rows))
      } finally {
        watch.dispose()
      }
      times.set(count, ms)
    }
  } finally {
    for (const t of [x, w, ...parts.map(({ table }) => table)]) device.release(t)
  }
  const one = times.get(1)!
  return new Map(splits.map((count) => [count, times.get(count)!.map((ms, h) => Math.max(0, ms - one[h]!))]))
}
