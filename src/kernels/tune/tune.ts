import type { Device } from '../../device/device.ts'
import type { Place } from '../../device/place.ts'
import { prove } from '../../device/prove.ts'
import { remembered } from '../../device/recorded.ts'
import { keptTunings } from '../../device/tunings.ts'
import { DeviceError, InputError } from '../../errors.ts'
import type { LinearRule } from '../../graph/target.ts'
import { linearProbes } from '../lib/linear_probes.ts'
import type { Phase } from './contest.ts'
import type { MatrixProduct } from './product.ts'
import { type Tuned, tuneProduct } from './tune_product.ts'

export interface TuneOptions {
  /** Rows of a run at which plans are compared: 1 to 8192, any order. */
  readonly heights?: readonly number[] | undefined
  /** Fewer heights, fewer plans measured to the end, less warming up. */
  readonly quick?: boolean | undefined
  /** Lets a software adapter pass. What is fastest there says nothing about GPUs. */
  readonly software?: boolean | undefined
  /** What was measured before an abort is kept. */
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((progress: TuneProgress) => void) | undefined
  /** Called with each product's result when it is kept. */
  readonly onTuned?: ((tuned: Tuned) => void) | undefined
  /** Called with what could not be measured or kept, and why. */
  readonly onWarning?: ((message: string) => void) | undefined
  /** Where rules are kept. Default: where `openDevice` finds them. */
  readonly place?: Place | undefined
}

export interface TuneProgress {
  readonly product: MatrixProduct
  /** The products before this one, and all. */
  readonly index: number
  readonly of: number
  readonly phase: Phase
  readonly done: number
  readonly total: number
}

/**
 * Measures every plan that fits for each matrix product on this device, and keeps the best as rules: the next
 * `openDevice` on this adapter goes by them. Other work on the device disturbs the times, and they it.
 *
 * @throws DeviceError 'unavailable' for the CPU and, unless `software`, for a software adapter; InputError for heights
 * that are none; the signal's reason
 */
export async function tune(
  device: Device,
  products: readonly MatrixProduct[],
  options: TuneOptions = {},
): Promise<Tuned[]> {
  const { quick = false, signal, onProgress, onTuned, onWarning = () => {}, place } = options
  expectGpu(device, options.software ?? false)
  const heights = readHeights(options.heights ?? (quick ? [64, 512] : [32, 64, 256, 1024]))
  const effort = quick ? { heights, warmMs: 15, most: 3 } : { heights, warmMs: 30, most: 6 }
  const tunings = keptTunings({ place, onWarning })
  await prove(device, linearProbes, remembered())

  const results: Tuned[] = []
  const slow = new Set<LinearRule['variant']>() // for one product, and so for all: compiling takes longest
  const distinct = bySize(products)
  for (const [index, product] of distinct.entries()) {
    signal?.throwIfAborted()
    const onStep = (phase: Phase, done: number, total: number) =>
      onProgress?.({ product, index, of: distinct.length, phase, done, total })
    try {
      const tuned = await tuneProduct(device, product, { ...effort, slow, signal, onStep })
      results.push(tuned)
      for (const variant of tuned.slow) slow.add(variant)
      await keep(tuned.rule)
      onTuned?.(tuned)
    } catch (error) {
      if (!(error instanceof DeviceError) || error.code === 'lost' || error.code === 'disposed') throw error
      onWarning(`${product.name}, ${product.N} x ${product.K}, is left as it was: ${error.message}`)
    }
  }
  return results

  async function keep(rule: LinearRule): Promise<void> {
    await tunings.keep(device.report.adapter, rule).catch((error: Error) => {
      onWarning(`tuning: cannot be kept: ${error.message}`)
    })
  }
}

function expectGpu({ kind, report }: Device, software: boolean): void {
  if (kind === 'cpu')
    throw new DeviceError(
      'unavailable',
      "tune: the device is the CPU, which has one kernel for all sizes; open a GPU with openDevice('webgpu')",
    )
  if (report.software && !software)
    throw new DeviceError(
      'unavailable',
      `tune: the adapter is software (${report.name}), and what is fastest there says nothing about GPUs; ` +
        'pass software (--software) to tune it all the same',
    )
}

function readHeights(heights: readonly number[]): number[] {
  const wrong = heights.find((rows) => !(Number.isInteger(rows) && rows >= 1 && rows <= MOST_ROWS))
  if (wrong !== undefined || heights.length === 0)
    throw new InputError(`tune: heights has [${heights}], expected integers from 1 to ${MOST_ROWS}`)
  return [...new Set(heights)].sort((a, b) => a - b)
}
const MOST_ROWS = 8192

/** A rule is for a size, so the first product of each stands for all. */
const bySize = (products: readonly MatrixProduct[]): MatrixProduct[] =>
  products.filter(({ N, K }, i) => products.findIndex((p) => p.N === N && p.K === K) === i)
