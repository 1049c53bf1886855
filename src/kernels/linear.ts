import activation from '../../shaders/lib/activation.wgsl' with { type: 'text' }
import columns from '../../shaders/lib/columns.wgsl' with { type: 'text' }
import finishAdd from '../../shaders/lib/finish_add.wgsl' with { type: 'text' }
import finishBias from '../../shaders/lib/finish_bias.wgsl' with { type: 'text' }
import finishGlu from '../../shaders/lib/finish_glu.wgsl' with { type: 'text' }
import finishStore from '../../shaders/lib/finish_store.wgsl' with { type: 'text' }
import finishSwiglu from '../../shaders/lib/finish_swiglu.wgsl' with { type: 'text' }
import rows from '../../shaders/lib/rows.wgsl' with { type: 'text' }
import step from '../../shaders/lib/step.wgsl' with { type: 'text' }
import source from '../../shaders/linear.wgsl' with { type: 'text' }
import { ShapeError } from '../errors.ts'
import { graphOf, type Made, record } from '../graph/graph.ts'
import type { Kernel, View } from '../graph/kernel.ts'
import type { LinearPlan, Target } from '../graph/target.ts'
import { expectFormat, expectShape, formatBytes, last, leading, type Tensor } from '../graph/tensor.ts'
import { layerNorm, normed } from './layer_norm.ts'
import { silu } from './lib/activation.ts'
import { heightsOf } from './lib/heights.ts'
import {
  choose,
  classesOf,
  type LinearVariant,
  linearTable,
  type Norm,
  type Product,
  slicesIn,
  slicesMisfit,
  splitInto,
  wholePlan,
} from './lib/linear_tiles.ts'
import type { Parts } from './lib/parts.ts'
import { rowCount, rowsOf } from './lib/rows.ts'
import { weightPieces } from './lib/weights.ts'
import { linearDot } from './linear_dot.ts'
import { linearFew } from './linear_few.ts'
import { linearMatrix } from './linear_matrix.ts'
import { linearTiled } from './linear_tiled.ts'

export interface LinearOptions {
  /** Added to y: f32, of y's shape. */
  readonly add?: Tensor
  /** Added to each row of y: [OUT] f32. Only one of `add`, `bias` and a gated `finish`. */
  readonly bias?: Tensor
  /** Of y; only f32 together with `add`. */
  readonly format?: 'f32' | 'f16'
  /** 'swiglu': w = [gate; up] and y = silu(x gateᵀ) · (x upᵀ), half as wide. 'swiglu_up_first': w = [up; gate]. */
  readonly finish?: 'store' | 'swiglu' | 'swiglu_up_first'
  /** The product is with the layer norm of x, which is f32: an op of its own, or part of the product. */
  readonly norm?: Norm
  /** 'few': a run has one or two rows, as when decoding. */
  readonly rows?: 'any' | 'few'
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
  { split = 'auto' }: { readonly split?: number | 'auto' } = {},
): Parts {
  const product = productOf(x, w, {})
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
  const HALVES = finish === 'store' ? 1 : 2
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
  const sizes = { IN, OUT, HALVES, few: rows === 'few' } as const
  const product = { target, x, w, ...sizes, format, finish, ...(norm && { norm }) } as const
  if ([add, bias, HALVES === 2].filter(Boolean).length > 1)
    throw new ShapeError('linear: two of add, bias and swiglu together; do one in an op of its own')
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
  const meant = [...fewPlans(product), ...(product.x.shape[0] === 'R' ? [readoutPlan] : [])]
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

const plain: LinearVariant = {
  misfit: ({ HALVES }, { RN }) => (RN! % HALVES === 0 ? undefined : `${RN} columns hold no pairs of gate and up`),
  kernel: (_, kernel) => kernel,
  constants: (_, { RM, RN, GROUP_X, GROUP_Y }) => ({ BM: RM! * GROUP_Y!, BN: RN! * GROUP_X!, BLOCK: RN! }),
}
const variants = {
  linear: plain,
  linear_dot: linearDot,
  linear_few: linearFew,
  linear_tiled: linearTiled,
  linear_matrix: linearMatrix,
}

function finishOf({ add, bias, finish }: Product): readonly string[] {
  if (finish === 'store') return [add ? finishAdd : bias ? finishBias : finishStore]
  return [activation, finish === 'swiglu' ? finishSwiglu : finishGlu]
}

function plainKernel(p: Product): Kernel {
  return {
    name: 'linear',
    reads: ['x', 'w', ...(p.norm ? ['norm'] : []), ...(p.add ? ['residual'] : p.bias ? ['bias'] : [])],
    writes: ['y'],
    packed: ['w'],
    shader: [step, rows, columns, weightPieces[p.w.format], ...finishOf(p), source],
    cost(constants, counts) {
      const { IN, OUT, Y_WIDTH } = constants as Record<'IN' | 'OUT' | 'Y_WIDTH', number>
      const T = rowCount(constants, counts)
      const values = T * (IN + Y_WIDTH * (p.add ? 2 : 1))
      return { flops: 2 * T * IN * OUT, bytes: IN * OUT * formatBytes[p.w.format] + values * 4 }
    },
    cpu({ x: rows, w, norm, residual, bias, y }, constants) {
      type Given = Record<'IN' | 'OUT' | 'HALVES' | 'KS' | 'SL' | 'Y_WIDTH', number>
      const { IN, OUT, HALVES, KS, SL, Y_WIDTH } = constants as Given
      const x = norm ? normedRows(rows!, norm, IN, p.norm!.eps) : rows!
      const width = OUT / HALVES
      const PART = KS * SL
      const count = x.length / IN
      // Columns of y outside, so that a row of w is still in the processor's cache for the next row of x.
      for (let to = 0; to < Y_WIDTH; to++) {
        const begin = Math.floor(to / width) * PART // of the part
        const column = to % width // Y_WIDTH is a multiple of width
        const product = (row: number, o: number) => dot(x, row * IN, w!, o * IN, begin, Math.min(begin + PART, IN))
        const [gate, up] = p.finish === 'swiglu' ? [column, width + column] : [width + column, column]
        for (let row = 0, at = to; row < count; row++, at += Y_WIDTH) {
          if (HALVES === 2) y![at] = silu(product(row, gate)) * product(row, up)
          else y![at] = product(row, column) + (residual?.[at] ?? bias?.[column] ?? 0)
        }
      }
    },
  }
}

function normedRows(x: View, norm: View, width: number, eps: number): Float64Array {
  const y = new Float64Array(x.length)
  for (let at = 0; at < x.length; at += width) y.set(normed(x.subarray(at, at + width), norm, eps), at)
  return y
}

/** Σ_i x[row + i] w[column + i] for i from begin to end, a multiple of 4 apart: four sums, so that none waits. */
function dot(x: View | Float64Array, row: number, w: View, column: number, begin: number, end: number): number {
  let [a, b, c, d] = [0, 0, 0, 0]
  for (let i = begin; i < end; i += 4) {
    a += x[row + i]! * w[column + i]!
    b += x[row + i + 1]! * w[column + i + 1]!
    c += x[row + i + 2]! * w[column + i + 2]!
    d += x[row + i + 3]! * w[column + i + 3]!
  }
  return a + b + c + d
}
