import source from '../../shaders/conv1d.wgsl' with { type: 'text' }
import activation from '../../shaders/lib/activation.wgsl' with { type: 'text' }
import columns from '../../shaders/lib/columns.wgsl' with { type: 'text' }
import finishConv from '../../shaders/lib/finish_conv.wgsl' with { type: 'text' }
import keepBoth from '../../shaders/lib/keep_both.wgsl' with { type: 'text' }
import keepSnaked from '../../shaders/lib/keep_snaked.wgsl' with { type: 'text' }
import keepValue from '../../shaders/lib/keep_value.wgsl' with { type: 'text' }
import residualAdd from '../../shaders/lib/residual_add.wgsl' with { type: 'text' }
import residualNone from '../../shaders/lib/residual_none.wgsl' with { type: 'text' }
import rows from '../../shaders/lib/rows.wgsl' with { type: 'text' }
import snakePiece from '../../shaders/lib/snake.wgsl' with { type: 'text' }
import step from '../../shaders/lib/step.wgsl' with { type: 'text' }
import { ShapeError } from '../errors.ts'
import { graphOf, record } from '../graph/graph.ts'
import type { Constants, Kernel } from '../graph/kernel.ts'
import { type Counts, expectFormat, expectShape, formatBytes, last, type Shape, type Tensor } from '../graph/tensor.ts'
import { type ConvPlan, convMisfit, convPlan, convVariants } from './lib/conv_tiles.ts'
import { convTwin, type Window } from './lib/conv_twin.ts'
import type { Product } from './lib/linear_tiles.ts'
import { operandOf } from './lib/operand.ts'
import { rowCount, rowsOf } from './lib/rows.ts'
import { weightPieces } from './lib/weights.ts'

/** A convolution's weights, one row for each column of the product. Row o of a plain one: taps · channels, then zeros. */
export interface ConvWeights {
  readonly w: Tensor // [OUT, IN], IN a multiple of 8
  readonly bias: Tensor // [channels of y]
  readonly taps: number
}

/** What is made of the sums: the value itself (f32), and the value through snake, the operand of a next convolution. */
export type Given = 'value' | 'snaked'

export interface Finish<K extends Given> {
  /** Default: the value. */
  readonly gives?: readonly K[]
  /** Added to the value: f32, of y's shape. */
  readonly add?: Tensor
  readonly tanh?: boolean
  /** alpha [1, channels of y, 1], for `snaked`. */
  readonly snake?: Tensor
  /** Of `snaked`. */
  readonly format?: 'f32' | 'f16'
  /** Rows of zeros at the end of x that are none of the signal, as odd strides leave them; those of y are made zeros. */
  readonly missing?: number
  /** How to compute it, and no other way: for sweeps and tests. */
  readonly plan?: ConvPlan | undefined
}

export interface Conv1dOptions<K extends Given> extends Finish<K> {
  readonly stride?: number
  readonly dilation?: number
  /** Rows of zeros on both sides; by default what leaves as many rows as there are over stride. */
  readonly padding?: number
}

/**
 * y[t, o] = bias[o] + Σ_j Σ_c w[o, j, c] x[t · stride + j · dilation − padding, c]: Conv1d of PyTorch over x in time-major
 * order. x is [L, C], or ['T', rate, C] where each row that is counted stands for `rate` rows of the signal (['T', C] at
 * a rate of 1); f32 or f16. y is [L', O] or ['T', rate / stride, O].
 */
export function conv1d<K extends Given = 'value'>(
  x: Tensor,
  weights: ConvWeights,
  options: Conv1dOptions<K> = {},
): Record<K, Tensor> {
  const { taps } = weights
  const { stride = 1, dilation = 1, missing = 0 } = options
  const span = dilation * (taps - 1) + 1
  const { padding = Math.ceil((span - stride) / 2) } = options
  const { RATE, CHANNELS } = signalOf(x)
  const [OUT = 0] = weights.bias.shape
  const IN = Math.ceil((taps * CHANNELS) / 8) * 8
  expectShape('conv1d', 'w', weights.w, [OUT, IN])
  const left = Math.floor((RATE + 2 * padding - span) / stride) + 1 // rows of y where x is counted once
  const rate = symbolic(x) ? RATE / stride : left
  if (rate !== left || rate < 1)
    throw new ShapeError(
      `conv1d: x (${x.label}) has ${RATE} rows, which ${taps} taps at a stride of ${stride} leave as ${left}`,
    )
  return recordConv('conv1d', x, weights, options, {
    ...{ CHANNELS, STRIDE: stride, DILATION: dilation, PADDING: padding, IN, OUT: OUT as number, SHIFT: 0 },
    ...{ X_RATE: RATE, RATE: rate, EXTRA: 0, Y_RATE: rate, Y_MISSING: Math.floor(missing / stride) },
  })
}

/**
 * y[n, o] = bias[o] + Σ_j Σ_c w[c, o, j] x[t, c] over t · stride + j − ⌈stride / 2⌉ = n, with 2 · stride taps: the
 * ConvTranspose1d of DAC. Row t of the product makes `stride` rows of y from x[t − 1] and x[t]; its weight has at row
 * (p, o) what tap p + stride has, then what tap p has. x as in `conv1d`; y [L · s, O] or ['T', rate · s, O]. An odd stride
 * makes one row less: [L · s − 1, O], or one more of the zeros that `missing` counts.
 */
export function convTranspose1d<K extends Given = 'value'>(
  x: Tensor,
  weights: ConvWeights,
  options: Finish<K> = {},
): Record<K, Tensor> {
  const stride = weights.taps / 2
  const { missing = 0 } = options
  const { RATE, CHANNELS } = signalOf(x)
  const [channels = 0] = weights.bias.shape
  const OUT = stride * (channels as number)
  const IN = Math.ceil((2 * CHANNELS) / 8) * 8
  if (!Number.isInteger(stride)) throw new ShapeError(`conv_transpose1d: ${weights.taps} taps, expected twice a stride`)
  expectShape('conv_transpose1d', 'w', weights.w, [OUT, IN])
  const lacks = transposedMissing(missing, stride)
  return recordConv('conv_transpose1d', x, weights, options, {
    ...{ CHANNELS, STRIDE: 1, DILATION: 1, PADDING: 1, IN, OUT, SHIFT: Math.ceil(stride / 2) * (channels as number) },
    ...{ X_RATE: RATE, RATE, EXTRA: 1 },
    ...(symbolic(x) ? { Y_RATE: RATE * stride, Y_MISSING: lacks } : { Y_RATE: RATE * stride - lacks, Y_MISSING: 0 }),
  })
}

/** Rows of zeros at the end of a transposed convolution's y. */
export const transposedMissing = (missing: number, stride: number): number => missing * stride + (stride % 2)

const symbolic = (x: Tensor): boolean => typeof x.shape[0] !== 'number'

/** Rows of the signal for each that is counted; a signal of fixed length is counted once. */
function signalOf(x: Tensor): { readonly RATE: number; readonly CHANNELS: number } {
  const [rows, ...inner] = x.shape
  expectFormat('conv1d', 'x', x, 'f32', 'f16')
  if (inner.length === 1) return { RATE: typeof rows === 'number' ? rows : 1, CHANNELS: last(x) }
  if (inner.length === 2 && symbolic(x)) return { RATE: inner[0] as number, CHANNELS: last(x) }
  throw new ShapeError(`conv1d: x (${x.label}) has shape [${x.shape}], expected [L, C], ['T', C] or ['T', rate, C]`)
}

/** The shape of `rate` rows for each that is counted of x. */
function shapeOf(x: Tensor, rate: number, channels: number): Shape {
  if (!symbolic(x)) return [rate, channels]
  return rate === 1 ? [x.shape[0]!, channels] : [x.shape[0]!, rate, channels]
}

function recordConv<K extends Given>(
  op: string,
  x: Tensor,
  { w, bias }: ConvWeights,
  { gives = ['value'] as K[], add, tanh = false, snake, format = 'f32', plan: asked }: Finish<K>,
  window: Window,
): Record<K, Tensor> {
  const { OUT, IN, CHANNELS, Y_RATE } = window
  const shape = shapeOf(x, Y_RATE, last(bias))
  const snaked = gives.includes('snaked' as K)
  const value = !snaked || gives.includes('value' as K)
  expectFormat(op, 'w', w, 'f32', 'f16', 'bf16')
  expectFormat(op, 'bias', bias, 'f32')
  if (snaked !== (snake !== undefined)) throw new ShapeError(`${op}: snake gives what is snaked; pass both or neither`)
  if (snake) expectShape(op, 'snake', snake, [1, last(bias), 1])
  if (add) expectShape(op, 'add', add, shape)
  for (const [name, t] of Object.entries({ add, snake })) if (t) expectFormat(op, name, t, 'f32')

  const reads = { x, w, bias, ...(add && { residual: add }), ...(snake && { alpha: snake }) }
  const { target } = graphOf(op, reads)
  const whole = { finish: 'store', HALVES: 1, few: false, readOut: false, format: 'f32' } as const
  const product: Product = { target, x, w, IN, OUT, channels: CHANNELS, ...whole }
  const plan = asked ?? convPlan(product)
  const misfit = plan && convMisfit(product, plan)
  if (misfit) throw new ShapeError(`${op}: ${plan.variant}: ${misfit}; choose another plan`)
  const keep = value ? (snaked ? keepBoth : keepValue) : keepSnaked
  const finish = [activation, add ? residualAdd : residualNone, ...(snaked ? [snakePiece] : []), keep, finishConv]
  const plain = plainKernel(op, Object.keys(reads), value && snaked ? ['y', 'snaked'] : ['y'], product, finish, !value)
  const variant = plan && convVariants[plan.variant]
  const tile = { SK: 1, SL: 1, ...plan?.tile }
  const fixed = variant ? { ...tile, ...variant.constants(product, tile) } : plainConstants(OUT)
  const ROWS = symbolic(x) ? rowsOf(op, x) : { ROWS: 1 }
  const constants = {
    ...{ ...fixed, ...window, ...ROWS, HALVES: 1, KS: IN, TANH: tanh ? 1 : 0 },
    ...{ Y_WIDTH: OUT, Y_CHANNELS: last(bias), Y_BINDING: Object.keys(reads).length },
  }
  const made = record<string>(variant ? variant.kernel(product, plain, finish) : plain, {
    reads,
    writes: {
      y: { shape, format: value ? 'f32' : format },
      ...(value && snaked && { snaked: { shape, format } }),
    },
    constants,
    workgroups(counts) {
      const groups = Math.ceil(productRows(constants, counts) / fixed.BM)
      const across = Math.ceil(OUT / fixed.BN)
      return plan ? [across, groups, 1] : [across, Math.min(groups, FOLD), Math.ceil(groups / FOLD)]
    },
  })
  const given = value ? { value: made.y, snaked: made.snaked } : { snaked: made.y }
  return given as Record<K, Tensor>
}

const productRows = (c: Constants, counts: Counts): number => rowCount(c, counts) * c.RATE! + c.EXTRA!

/** Small: what is unrolled costs software drivers seconds to compile. */
const plainTile = (OUT: number) =>
  OUT < 4 ? { RM: 4, RN: 1, GROUP_X: 1, GROUP_Y: 64 } : { RM: 2, RN: 2, GROUP_X: 8, GROUP_Y: 8 }
/** Workgroups along y; more fold into z. */
const FOLD = 32768

function plainConstants(OUT: number) {
  const tile = plainTile(OUT)
  return { ...tile, BK: 8, BM: tile.RM * tile.GROUP_Y, BN: tile.RN * tile.GROUP_X, BLOCK: tile.RN, FOLD }
}

function plainKernel(
  name: string,
  reads: readonly string[],
  writes: readonly string[],
  p: Product,
  finish: readonly string[],
  onlySnaked: boolean,
): Kernel {
  return {
    name,
    reads,
    writes,
    packed: ['w'],
    shader: [step, rows, operandOf(p), columns, weightPieces[p.w.format], ...finish, source],
    cost(constants, counts) {
      const { IN, OUT, CHANNELS, X_RATE } = constants as Record<'IN' | 'OUT' | 'CHANNELS' | 'X_RATE', number>
      const M = productRows(constants, counts)
      const values = rowCount(constants, counts) * X_RATE * CHANNELS + M * OUT * (reads.length - 3 + writes.length)
      return { flops: 2 * M * IN * OUT, bytes: IN * OUT * formatBytes[p.w.format] + 4 * values }
    },
    cpu: (views, constants, counts) => convTwin(views, constants, rowCount(constants, counts), onlySnaked),
  }
}
