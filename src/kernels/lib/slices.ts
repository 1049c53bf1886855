import alone from '../../../shaders/lib/sum_alone.wgsl' with { type: 'text' }
import shared from '../../../shaders/lib/sum_shared.wgsl' with { type: 'text' }
import type { Kernel } from '../../graph/kernel.ts'
import type { Target } from '../../graph/target.ts'

/**
 * How the neighbours that share a row come by its sum: each adds up all of it ('alone', no barriers), or each its share
 * and then they exchange sums through workgroup memory ('shared').
 */
export type Summing = 'alone' | 'shared'

/** A kernel whose shader calls `slices_sum`, in both forms; the shared one is called `<name>_shared`. */
export type BothSummings = Readonly<Record<Summing, Kernel>>

export const bothSummings = (kernel: Kernel): BothSummings => ({
  alone: { ...kernel, shader: [alone, ...kernel.shader] },
  shared: { ...kernel, name: `${kernel.name}_shared`, optional: true, shader: [shared, ...kernel.shader] },
})

/** Barriers compile slowly on software drivers. */
export const pickSumming = ({ software, disabled }: Target, { shared }: BothSummings): Summing =>
  software || disabled.has(shared.name) ? 'alone' : 'shared'

/** The power of two of neighbours that share n elements, at most `most`. */
export const slicesOf = (n: number, most: number): number => Math.min(most, 2 ** Math.ceil(Math.log2(n)))
