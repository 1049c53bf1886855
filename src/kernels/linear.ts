import activation from '../../shaders/lib/activation.wgsl' with { type: 'text' }
import columns from '../../shaders/lib/columns.wgsl' with { type: 'text' }
import finishAdd from '../../shaders/lib/finish_add.wgsl' with { type: 'text' }
import finishStore from '../../shaders/lib/finish_store.wgsl' with { type: 'text' }
import finishSwiglu from '../../shaders/lib/finish_swiglu.wgsl' with { type: 'text' }
import rows from '../../shaders/lib/rows.wgsl' with { type: 'text' }
import step from '../../shaders/lib/step.wgsl' with { type: 'text' }
import weightBf16 from '../../shaders/lib/weight_bf16.wgsl' with { type: 'text' }
import weightF16 from '../../shaders/lib/weight_f16.wgsl' with { type: 'text' }
import weightF32 from '../../shaders/lib/weight_f32.wgsl' with { type: 'text' }
import source from '../../shaders/linear.wgsl' with { type: 'text' }
import { ShapeError } from '../errors.ts'
import { graphOf, type Made, record } from '../graph/graph.ts'
import type { Kernel, View } from '../graph/kernel.ts'
import type { LinearPlan } from '../graph/target.ts'
import { expectFormat, expectShape, last, leading, type Tensor } from '../graph/tensor.ts'
import { silu } from './lib/activation.ts'
import { choose, classesOf, type LinearVariant, linearTable, type Product } from './lib/linear_tiles.ts'
import { rowCount, rowsOf } from './lib/rows.ts'
import { linearDot } from './linear_dot.ts'
import { linearMatrix } from './linear_matrix.ts'
import { linearTiled } from './linear_tiled.ts'

export interface LinearOptions {
  /** Added to y: f32, of y's shape. */
  readonly add?: Tensor
  /** Of y; only f32 together with `add`. */
  readonly format?: 'f32' | 'f16'
  /** 'swiglu': w = [gate; up] and y = silu(x gateᵀ) · (x upᵀ), half as wide; not together with `add`. */
  readonly finish?: 'store' | 'swiglu'
}

/**
 * y[t, o] = Σ_i x[t, i] · w[o, i] (+ add[t, o]): a linear layer without bias, its weight as PyTorch stores it.
 * x [rows, IN] f32 or f16, w [OUT, IN] f32, f16 or bf16, y [rows, OUT] (SwiGLU: OUT / 2). IN is a multiple of 8. Sums
 * are f32.
 */
export function linear(x: Tensor, w: Tensor, options: LinearOptions = {}): Tensor {
  const product = productOf(x, w, options)
  const plan = planOf(product)
  return recordPlan(product, { ...plan, order: { ...plan.order, SK: 1 } }).y
}

/**
 * The product in SK parts that add up to it, for an op that has to add anyway: part z of row t sums the z-th stretch
 * of IN and lies in columns z · OUT and on. Parts [rows, SK · OUT] f32. `split` asks for a number of parts; it is less
 * where IN has fewer tiles.
 */
export function linearParts(
  x: Tensor,
  w: Tensor,
  { split = 'auto' }: { readonly split?: number | 'auto' } = {},
): { readonly parts: Tensor; readonly SK: number } {
  const product = productOf(x, w, {})
  const plan = planOf(product)
  const SK = split === 'auto' ? plan.order.SK : split
  const { y: parts, SK: made } = recordPlan(product, { ...plan, order: { ...plan.order, SK } })
  return { parts, SK: made }
}

/** `linear` by this plan and no other, for sweeps and tests: y, or its parts where the plan splits the sum. */
export function recordLinear(x: Tensor, w: Tensor, plan: LinearPlan, options: LinearOptions = {}): Tensor {
  return recordPlan(productOf(x, w, options), plan).y
}

/** The plan that the target asks for: of the tuned and built-in ones that fit the one measured nearest, else `plainPlan`. */
export function linearPlan(x: Tensor, w: Tensor, options: LinearOptions = {}): LinearPlan {
  return planOf(productOf(x, w, options))
}

/** Why a plan cannot serve `linear` of these tensors on their graph's target; undefined where it can. */
export function linearMisfit(x: Tensor, w: Tensor, plan: LinearPlan, options: LinearOptions = {}): string | undefined {
  return misfitOf(productOf(x, w, options), plan)
}

function productOf(x: Tensor, w: Tensor, { add, format = 'f32', finish = 'store' }: LinearOptions): Product {
  const [T = 1] = x.shape
  const [OUT] = w.shape
  const IN = last(x)
  const HALVES = finish === 'swiglu' ? 2 : 1
  expectFormat('linear', 'x', x, 'f32', 'f16')
  expectFormat('linear', 'w', w, 'f32', 'f16', 'bf16')
  expectShape('linear', 'x', x, [T, IN])
  if (typeof OUT !== 'number')
    throw new ShapeError(`linear: w (${w.label}) has shape [${w.shape}], expected [OUT, ${IN}] of a fixed OUT`)
  expectShape('linear', 'w', w, [OUT, IN])
  if (IN % 8 !== 0)
    throw new ShapeError(`linear: x (${x.label}) has ${IN} columns, expected a multiple of 8; pad x and w with zeros`)
  if (OUT % HALVES !== 0)
    throw new ShapeError(`linear: w (${w.label}) has ${OUT} rows, expected as many of the gate as of up`)
  const product = { target: graphOf('linear', { x, w }).target, x, w, IN, OUT, HALVES, format } as const
  if (!add) return product
  expectShape('linear', 'add', add, [T, OUT])
  expectFormat('linear', 'add', add, 'f32')
  if (format !== 'f32') throw new ShapeError(`linear: format is ${format}, expected f32 with add; leave it out`)
  if (HALVES === 2) throw new ShapeError('linear: add together with swiglu; add in an op of its own')
  return { ...product, add }
}

/** Rows and columns of y per invocation, and invocations per workgroup: 4 x 4 was the fastest of those tried. */
const tile = { RM: 4, RN: 4, GROUP_X: 16, GROUP_Y: 4 }
/** Fits every product on every device. */
export const plainPlan: LinearPlan = { variant: 'linear', order: { SK: 1, BK: 8 }, heights: [{ tile }] }
/** Rows that are read out are few. */
const readoutPlan: LinearPlan = {
  variant: 'linear_dot',
  order: { SK: 1, BK: 8 },
  heights: [{ tile: { WORKGROUP: 64 } }],
}

/** By the target, N and K alone. The built-in table is of GPUs; a tuning is of the very device. */
function planOf(product: Product): LinearPlan {
  const { target, OUT, IN } = product
  const few = !target.software && product.x.shape[0] === 'R'
  if (few && misfitOf(product, readoutPlan) === undefined) return readoutPlan
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
  const fit = ({ tile }: LinearPlan['heights'][number]) => variants[variant].misfit(p, { ...order, ...tile })
  return heights.map(fit).find((misfit) => misfit !== undefined)
}

/** One step for each height, of which a run takes the one that its rows ask for; all write the same y. */
function recordPlan(p: Product, plan: LinearPlan): { readonly y: Tensor; readonly SK: number } {
  const { x, w, add, IN, OUT, HALVES } = p
  const { variant, heights } = plan
  const misfit = misfitOf(p, plan)
  if (misfit) throw new ShapeError(`${variant}: [${x.shape}] x [${w.shape}]: ${misfit}; choose another plan`)
  if (!(Number.isInteger(plan.order.SK) && plan.order.SK > 0))
    throw new ShapeError(`${variant}: a sum in ${plan.order.SK} parts, expected a positive integer`)
  const KS = Math.ceil(IN / plan.order.SK / plan.order.BK) * plan.order.BK
  const SK = Math.ceil(IN / KS)
  if (SK > 1 && (add || HALVES === 2 || p.format !== 'f32'))
    throw new ShapeError(`${variant}: a sum in ${SK} parts is stored as f32, without add or swiglu; set SK to 1`)

  const reads = { x, w, ...(add && { residual: add }) }
  const [T = 1] = x.shape
  const width = (SK * OUT) / HALVES
  const { kernel, constants } = variants[variant]
  let y: Made | Tensor = { shape: [T, width], format: p.format }
  heights.forEach(({ upTo = Number.POSITIVE_INFINITY, tile }, i) => {
    const own = { ...plan.order, ...tile }
    const fixed = constants(p, own)
    const above = heights[i - 1]?.upTo ?? 0
    const serves = (n: number): boolean => n > above && n <= upTo
    if (typeof T === 'number' && !serves(T)) return
    y = record<'y'>(kernel(p, plainKernel(p), finishOf(p)), {
      reads,
      writes: { y },
      constants: {
        ...own,
        ...fixed,
        ...rowsOf('linear', x),
        ...{ IN, OUT, HALVES, SK, KS, Y_WIDTH: width, Y_BINDING: Object.keys(reads).length },
      },
      workgroups(counts) {
        const n = leading(x, counts)
        return serves(n) ? [Math.ceil(OUT / fixed.BN), Math.ceil(n / fixed.BM), SK] : [0, 0, 0]
      },
    }).y
  })
  return { y: y as Tensor, SK }
}

const plain: LinearVariant = {
  misfit: ({ HALVES }, { RN }) => (RN! % HALVES === 0 ? undefined : `${RN} columns hold no pairs of gate and up`),
  kernel: (_, kernel) => kernel,
  constants: (_, { RM, RN, GROUP_X, GROUP_Y }) => ({ BM: RM! * GROUP_Y!, BN: RN! * GROUP_X!, BLOCK: RN! }),
}
const variants = { linear: plain, linear_dot: linearDot, linear_tiled: linearTiled, linear_matrix: linearMatrix }

const weights = { f32: weightF32, f16: weightF16, bf16: weightBf16, u32: '' }
const weightBytes = { f32: 4, f16: 2, bf16: 2, u32: 4 }

const finishOf = ({ add, HALVES }: Product): readonly string[] =>
  HALVES === 2 ? [activation, finishSwiglu] : [add ? finishAdd : finishStore]

function plainKernel(p: Product): Kernel {
  return {
    name: 'linear',
    reads: ['x', 'w', ...(p.add ? ['residual'] : [])],
    writes: ['y'],
    packed: ['w'],
    shader: [step, rows, columns, weights[p.w.format], ...finishOf(p), source],
    cost(constants, counts) {
      const { IN, OUT, Y_WIDTH } = constants as Record<'IN' | 'OUT' | 'Y_WIDTH', number>
      const T = rowCount(constants, counts)
      const values = T * (IN + Y_WIDTH * (p.add ? 2 : 1))
      return { flops: 2 * T * IN * OUT, bytes: IN * OUT * weightBytes[p.w.format] + values * 4 }
    },
    cpu({ x, w, residual, y }, constants) {
      const { IN, OUT, HALVES, KS, Y_WIDTH } = constants as Record<'IN' | 'OUT' | 'HALVES' | 'KS' | 'Y_WIDTH', number>
      const width = OUT / HALVES
      for (let at = 0; at < y!.length; at++) {
        const row = Math.floor(at / Y_WIDTH)
        const begin = Math.floor((at % Y_WIDTH) / width) * KS // of the part
        const column = at % width // Y_WIDTH is a multiple of width
        const product = (o: number) => dot(x!, row * IN, w!, o * IN, begin, Math.min(begin + KS, IN))
        y![at] =
          HALVES === 2 ? silu(product(column)) * product(width + column) : product(column) + (residual?.[at] ?? 0)
      }
    },
  }
}

/** Σ_i x[row + i] w[column + i] for i from begin to end. */
function dot(x: View, row: number, w: View, column: number, begin: number, end: number): number {
  let sum = 0
  for (let i = begin; i < end; i++) sum += x[row + i]! * w[column + i]!
  return sum
}
