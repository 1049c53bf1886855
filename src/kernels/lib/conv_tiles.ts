import type { Constants } from '../../graph/kernel.ts'
import { linearMatrix } from '../linear_matrix.ts'
import { linearTiled } from '../linear_tiled.ts'
import type { Product } from './linear_tiles.ts'

/** How the product of a convolution is computed, where not plainly: a variant of `linear` and its tile. */
export interface ConvPlan {
  readonly variant: 'linear_matrix' | 'linear_tiled'
  readonly tile: Constants
}

export const convVariants = { linear_matrix: linearMatrix, linear_tiled: linearTiled }

const matrix = (tile: Constants): ConvPlan => ({ variant: 'linear_matrix', tile: { BK: 32, ...tile } })
const tiled = (tile: Constants): ConvPlan => ({ variant: 'linear_tiled', tile: { BK: 16, RM: 8, MORTON: 0, ...tile } })

/** Matrix units first; of both, wide tiles first, and large ones before those for devices with little memory. */
const plans: readonly ConvPlan[] = [
  matrix({ BM: 128, BN: 128, WM: 2, WN: 4 }),
  matrix({ BM: 64, BN: 128, WM: 1, WN: 4 }),
  matrix({ BM: 128, BN: 96, WM: 4, WN: 2 }),
  matrix({ BM: 128, BN: 64, WM: 4, WN: 2 }),
  matrix({ BM: 64, BN: 64, WM: 2, WN: 2 }),
  matrix({ BM: 128, BN: 32, WM: 4, WN: 1 }),
  matrix({ BM: 64, BN: 32, WM: 2, WN: 1 }),
  tiled({ BM: 128, BN: 128, RN: 8 }),
  tiled({ BM: 128, BN: 64, RN: 8 }),
  tiled({ BM: 64, BN: 64, RN: 8 }),
  tiled({ BM: 128, BN: 32, RN: 4 }),
]

/**
 * The plan for a convolution by its columns and the target; undefined where only the plain kernel can serve it. One
 * tile whatever the rows are, since each is a pipeline: the one that computes the fewest columns in vain. Sums are f32
 * throughout.
 */
export function convPlan(p: Product): ConvPlan | undefined {
  if (p.target.software) return undefined
  const columns = ({ tile: { BN } }: ConvPlan): number => Math.ceil(p.OUT / BN!) * BN!
  const fitting = plans.filter((plan) => columns(plan) < 2 * p.OUT && convMisfit(p, plan) === undefined)
  const [first] = fitting
  return fitting.filter(({ variant }) => variant === first!.variant).sort((a, b) => columns(a) - columns(b))[0] // sort is stable
}

/** Why a plan cannot serve a convolution; undefined where it can. */
export function convMisfit(p: Product, { variant, tile }: ConvPlan): string | undefined {
  const reason = p.target.disabled.get(variant)
  if (reason !== undefined) return `${variant} is disabled: ${reason}`
  return convVariants[variant].misfit(p, { SK: 1, ...tile })
}
