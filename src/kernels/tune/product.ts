import type { Graph } from '../../graph/graph.ts'
import type { LinearPlan } from '../../graph/target.ts'
import type { Tensor } from '../../graph/tensor.ts'
import { partsIn, wholePlan } from '../lib/linear_tiles.ts'
import { type LinearOptions, linearMisfit, linearPlan, recordLinear } from '../linear.ts'

/** A product y = x wᵀ of a model: x [rows, K], w [N, K]. */
export interface MatrixProduct {
  readonly name: string
  readonly N: number
  readonly K: number
  /** y is stored as f32, or handed in parts to an add_rms_norm, or w = [gate; up] and y = silu(gate) · up. */
  readonly use: 'store' | 'parts' | 'swiglu'
}

const optionsOf = (use: MatrixProduct['use'], format: 'f32' | 'f16'): LinearOptions =>
  use === 'swiglu' ? { finish: 'swiglu', format } : {}

/** Records the product as a model does, by this plan. */
export const recordProduct = ({ target }: Graph, { use }: MatrixProduct, x: Tensor, w: Tensor, plan: LinearPlan) =>
  recordLinear(x, w, plan, optionsOf(use, target.operand))

/** Why a plan cannot serve the product; undefined where it can. */
export function misfit({ target }: Graph, { use }: MatrixProduct, x: Tensor, w: Tensor, plan: LinearPlan) {
  if (partsIn(plan) > 1 && use !== 'parts') return 'nobody adds up parts of it'
  return linearMisfit(x, w, plan, optionsOf(use, target.operand))
}

/** What the model would take, from the built-in table and the tuning of the graph's target. */
export function pickedPlan({ target }: Graph, { use }: MatrixProduct, x: Tensor, w: Tensor): LinearPlan {
  const plan = linearPlan(x, w, optionsOf(use, target.operand))
  return use === 'parts' ? plan : wholePlan(plan)
}

/** The plan with one tile, for runs of so many rows. */
export function planAt({ variant, order, heights }: LinearPlan, rows: number): LinearPlan {
  const { tile } = heights.find(({ upTo = Number.POSITIVE_INFINITY }) => rows <= upTo)!
  return { variant, order, heights: [{ tile }] }
}

/** 'linear_matrix SK1 BK32 BM64 BN128 WM1 WN4': a plan with one tile, for people and as a key. */
export const planName = ({ variant, order, heights: [height] }: LinearPlan): string =>
  [variant, ...Object.entries({ ...order, ...height!.tile }).map(([key, value]) => `${key}${value}`)].join(' ')
