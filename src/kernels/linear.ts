import { ShapeError } from '../errors.ts'
import { graphOf, type Made, record } from '../graph/graph.ts'
import type { LinearPlan, Target } from '../graph/target.ts'
import { expectFormat, expectShape, last, leading, type Tensor } from '../graph/tensor.ts'
import { layerNorm } from './layer_norm.ts'
import { heightsOf } from './lib/heights.ts'
import { finishOf, plain, plainKernel } from './lib/linear_plain.ts'
import {
  choose,
  classesOf,
  type Finish,
  linearTable,
  type Norm,
  type Product,
  slicesIn,
  slicesMisfit,
  splitInto,
  wholePlan,
} from './lib/linear_tiles.ts'
import type { Parts } from './lib/parts.ts'
import { rowsOf } from './lib/rows.ts'
import { linearDot } from './linear_dot.ts'
import { linearFew } from './linear_few.ts'
import { linearMatrix } from './linear_matrix.ts'
import { linearTiled } from './linear_tiled.ts'

export interface LinearOptions {
  /** Added to y: f32, of y's shape. */
  readonly add?: Tensor
  /** Added to each row of y: [OUT] f32. Only one of `add`, `bias` and SwiGLU. */
  readonly bias?: Tensor
  /** Of y; only f32 together with `add`. */
  readonly format?: 'f32' | 'f16'
  /**
   * 'swiglu': w = [gate; up] and y = silu(x gateᵀ) · (x upᵀ), half as wide. 'swiglu_up_first': w = [up; gate]. 'gelu' and
   * 'gelu_tanh': y = gelu(x wᵀ + bias), by the error function or PyTorch's 'tanh' formula; with a `bias`.
   */
  readonly finish?: Finish
  /** The product is with the layer norm of x, which is f32: an op of its own, or part of the product. */
  readonly norm?: Norm
  /** 'few': a run has one or two rows, as when decoding. 'many': rows of 'R' are multiplied as those of 'T' are. */
  readonly rows?: 'any' | 'few' | 'many'
}

/**
 * y[t, o] = Σ_i x[t, i] · w[o, i] (+ add[t, o] or bias[o]): a linear layer, its weight as PyTorch stores it.
 * x [rows, IN] f32 or f16, w [OUT, IN] f32, f16, bf16 or q8, y [rows, OUT] (SwiGLU: OUT / 2). IN is a multiple of 8, of
 * 32 for q8. Sums are f32.
 */
export function linear(x: Tensor, w: Tensor, options: LinearOptions = {}): Tensor {
  const product = productOf(x, w, options)
  const plan = planOf(product)
  const { norm, ...rest } = options
  if (norm && plan.variant !== 'linear_few')
    return linear(layerNorm(x, norm.w, { eps: norm.eps, format: operandOf(product.target, w) }), w, rest)
  return recordPlan(product, wholePlan(plan)).sums
}

/** The format in which a product with w takes its other operand. */
export const operandOf = (target: Target, w: Tensor): Target['operand'] => (w.format === 'q8' ? 'f32' : target.operand)

/**
 * The product in parts that add up to it, for an op that has to add anyway: part z of a row sums the z-th stretch of IN.
 * `split` asks for stretches that are parts at every height; they are fewer where IN has fewer tiles.
 */
export function linearParts(
  x: Tensor,
  w: Tensor,
  { split = 'auto', rows = 'any' }: { readonly split?: number | 'auto' } & Pick<LinearOptions, 'rows'> = {},
): Parts {
  const product = productOf(x, w, { rows })
  const plan = planOf(product)
  return recordPlan(product, split === 'auto' ? plan : splitInto(plan, split))
}

/** `linear` by this plan and no other, for sweeps and tests: y, or its parts where the plan leaves some. */
export function recordLinear(x: Tensor, w: Tensor, plan: LinearPlan, options: LinearOptions = {}): Tensor {
  return recordPlan(productOf(x, w, options), plan).sums
}

/** The plan that the target asks for: of the tuned and built-in ones that fit the one measured nearest, else `plainPlan`. */
export function linearPlan(x: Tensor, w: Tensor, options: LinearOptions = {}): LinearPlan {
  return planOf(productOf(x, w, options))
}

/** Why a plan cannot serve `linear` of these tensors on their graph's target; undefined where it can. */
export function linearMisfit(x: Tensor, w: Tensor, plan: LinearPlan, options: LinearOptions = {}): string | undefined {
  return misfitOf(productOf(x, w, options), plan)
}

function productOf(x: Tensor, w: Tensor, options: LinearOptions): Product {
  const { add, bias, norm, format = 'f32', finish = 'store', rows = 'any' } = options
  const [T = 1] = x.shape
  const [OUT] = w.shape
  const IN = last(x)
  const HALVES = finish.startsWith('swiglu') ? 2 : 1
  expectFormat('linear', 'x', x, 'f32', 'f16')
  expectFormat('linear', 'w', w, 'f32', 'f16', 'bf16', 'q8')
  expectShape('linear', 'x', x, [T, IN])
  if (typeof OUT !== 'number')
    throw new ShapeError(`linear: w (${w.label}) has shape [${w.shape}], expected [OUT, ${IN}] of a fixed OUT`)
  expectShape('linear', 'w', w, [OUT, IN])
  const whole = w.format === 'q8' ? 32 : 8
  if (IN % whole !== 0)
    throw new ShapeError(
      `linear: x (${x.label}) has ${IN} columns, expected a multiple of ${whole}; pad x and w with zeros`,
    )
  if (OUT % HALVES !== 0)
    throw new ShapeError(`linear: w (${w.label}) has ${OUT} rows, expected as many of the gate as of up`)
  if (norm) {
    expectFormat('linear', 'x of a norm', x, 'f32')
    expectFormat('linear', 'norm', norm.w, 'f32')
    expectShape('linear', 'norm', norm.w, [2, IN])
  }
  const { target } = graphOf('linear', { x, w })
  const readOut = T === 'R' && rows !== 'many'
  const sizes = { IN, OUT, HALVES, few: rows === 'few', readOut } as const
  const product = { target, x, w, ...sizes, format, finish, ...(norm && { norm }) } as const
  if ([add, bias, HALVES === 2].filter(Boolean).length > 1)
    throw new ShapeError('linear: two of add, bias and swiglu together; do one in an op of its own')
  if (finish.startsWith('gelu') && !bias)
    throw new ShapeError(`linear: ${finish} of a product without a bias; give one, zeros if need be`)
  if (bias) {
    expectShape('linear', 'bias', bias, [OUT])
    expectFormat('linear', 'bias', bias, 'f32')
    return { ...product, bias }
  }
  if (!add) return product
  expectShape('linear', 'add', add, [T, OUT])
  expectFormat('linear', 'add', add, 'f32')
  if (format !== 'f32') throw new ShapeError(`linear: format is ${format}, expected f32 with add; leave it out`)
  return { ...product, add }
}

/** Rows and columns of y per invocation, and invocations per workgroup: 4 x 4 was the fastest of those tried. */
const tile = { RM: 4, RN: 4, GROUP_X: 16, GROUP_Y: 4 }
/** Fits every product on every device. */
export const plainPlan: LinearPlan = { variant: 'linear', order: { SK: 1, BK: 8 }, heights: [{ tile }] }
/** For rows that are read out. */
const readoutPlan: LinearPlan = {
  variant: 'linear_dot',
  order: { SK: 1, BK: 8 },
  heights: [{ tile: { WORKGROUP: 64 } }],
}
/**
 * For rows that are decoded, the fastest of those tried on an H200: few lanes share a sum, for many columns, where all
 * workgroups make a norm and there is enough for all of them. Then one for little workgroup memory.
 */
function fewPlans({ few, OUT, norm }: Product): LinearPlan[] {
  if (!few) return []
  const tile = norm ? { LANES: OUT < 8192 ? 128 : 32, PER: 8 } : { LANES: 128, PER: 4 }
  return [
    { WORKGROUP: 256, ...tile },
    { WORKGROUP: 128, LANES: 32, PER: 8 },
  ].map((tile) => ({
    variant: 'linear_few',
    order: { SK: 1, BK: 8 },
    heights: [{ tile }],
  }))
}

/** By the target, N and K alone. The built-in table is of GPUs; a tuning is of the very device. */
function planOf(product: Product): LinearPlan {
  const { target, OUT, IN } = product
  const meant = [...fewPlans(product), ...(product.readOut ? [readoutPlan] : [])]
  const plan = target.software ? undefined : meant.find((plan) => misfitOf(product, plan) === undefined)
  if (plan) return plan
  const table = target.software ? [] : linearTable
  const rules = [...(target.tuning ?? []), ...table].filter((rule) => misfitOf(product, rule) === undefined)
  const nearest = classesOf(product)
    .map((on) => rules.filter((rule) => rule.on === on))
    .map((r) => choose(r, OUT, IN))
  return nearest.find((rule) => rule !== undefined) ?? plainPlan
}

function misfitOf(p: Product, { variant, order, heights }: LinearPlan): string | undefined {
  const reason = p.target.disabled.get(variant)
  if (reason !== undefined) return `${variant} is disabled: ${reason}`
  if (p.norm && variant !== 'linear_few') return `${variant} takes no norm of x`
  const fit = ({ tile }: LinearPlan['heights'][number]) =>
    slicesMisfit(p, variant, { ...order, ...tile }) ?? variants[variant].misfit(p, { ...order, ...tile })
  return heights.map(fit).find((misfit) => misfit !== undefined)
}

/** One step for each height, of which a run takes the one that its rows ask for; all write the same y. */
function recordPlan(p: Product, plan: LinearPlan): Parts {
  const { x, w, norm, add, bias, IN, OUT, HALVES } = p
  const { variant } = plan
  const misfit = misfitOf(p, plan)
  if (misfit) throw new ShapeError(`${variant}: [${x.shape}] x [${w.shape}]: ${misfit}; choose another plan`)
  if (!(Number.isInteger(plan.order.SK) && plan.order.SK > 0))
    throw new ShapeError(`${variant}: a sum in ${plan.order.SK} parts, expected a positive integer`)
  const KS = Math.ceil(IN / plan.order.SK / plan.order.BK) * plan.order.BK
  const SK = Math.ceil(IN / KS)
  const heights = plan.heights.map((height) => ({ ...height, COUNT: SK / slicesIn(height.tile) }))
  const most = Math.max(...heights.map(({ COUNT }) => COUNT))
  if (most > 1 && (add || bias || HALVES === 2 || p.format !== 'f32'))
    throw new ShapeError(
      `${variant}: a sum in ${most} parts is stored as f32, without add, bias or swiglu; set SK to 1`,
    )

  const also = { ...(norm && { norm: norm.w }), ...(add && { residual: add }), ...(bias && { bias }) }
  const reads = { x, w, ...also }
  const { kernel, constants } = variants[variant]
  let y: Made | Tensor = { shape: [x.shape[0] ?? 1, (most * OUT) / HALVES], format: p.format }
  for (const { height, serves } of heightsOf(x.shape, heights)) {
    const { tile, COUNT } = height
    const own = { ...plan.order, ...tile }
    const fixed = constants(p, own)
    y = record<'y'>(kernel(p, plainKernel(p), finishOf(p)), {
      reads,
      writes: { y },
      constants: {
        ...own,
        ...fixed,
        ...rowsOf('linear', x),
        ...{ IN, OUT, HALVES, SK, KS, SL: slicesIn(tile) },
        ...{ Y_WIDTH: (COUNT * OUT) / HALVES, Y_BINDING: Object.keys(reads).length },
      },
      workgroups(counts) {
        const n = leading(x, counts)
        return serves(n) ? [Math.ceil(OUT / fixed.BN), Math.ceil(n / fixed.BM), COUNT] : [0, 0, 0]
      },
    }).y
  }
  const distinct = heights.filter(({ COUNT }, i) => COUNT !== heights[i + 1]?.COUNT)
  return {
    sums: y as Tensor,
    heights: distinct.map(({ upTo, COUNT }) => ({ ...(upTo !== undefined && { upTo }), COUNT })),
  }
}

const variants = {
  linear: plain,
  linear_dot: linearDot,
  linear_few: linearFew,
  linear_tiled: linearTiled,
  linear_matrix: linearMatrix,
}
