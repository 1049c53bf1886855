import source from '../../shaders/layer_norm.wgsl' with { type: 'text' }
import row from '../../shaders/lib/row_plain.wgsl' with { type: 'text' }
import rows from '../../shaders/lib/rows.wgsl' with { type: 'text' }
import scalar from '../../shaders/lib/scalar.wgsl' with { type: 'text' }
import step from '../../shaders/lib/step.wgsl' with { type: 'text' }
import vector from '../../shaders/lib/vector.wgsl' with { type: 'text' }
import { graphOf, record } from '../graph/graph.ts'
import { fold, type Kernel, type View } from '../graph/kernel.ts'
import { expectFormat, expectShape, last, leading, type Tensor } from '../graph/tensor.ts'
import { rowCount, rowsOf } from './lib/rows.ts'
import { type BothSummings, bothSummings, pickSumming, type Summing, slicesOf } from './lib/slices.ts'

export interface LayerNormOptions {
  readonly eps: number
  /** Of y. */
  readonly format?: 'f32' | 'f16'
  /** Default: 'shared' on hardware. */
  readonly summing?: Summing
}

/**
 * y = (x - mean(x)) / √(var(x) + eps) · w[0] + w[1] over each row: layer normalisation (Ba, Kiros and Hinton 2016).
 * x [rows, width] f32 or f16, w [2, width] f32: weight, bias. y [rows, width]. Statistics are f32.
 */
export function layerNorm(x: Tensor, w: Tensor, { eps, format = 'f32', summing }: LayerNormOptions): Tensor {
  const op = 'layer_norm'
  const [T = 1] = x.shape
  const WIDTH = last(x)
  expectFormat(op, 'x', x, 'f32', 'f16')
  expectFormat(op, 'w', w, 'f32')
  expectShape(op, 'x', x, [T, WIDTH])
  expectShape(op, 'w', w, [2, WIDTH])
  const lanes = WIDTH % 4 === 0 ? 4 : 1
  const both = lanes === 4 ? byVector : byScalar
  const form = summing ?? pickSumming(graphOf(op, { x, w }).target, both)
  const slices = form === 'alone' ? ALONE.SLICES : slicesOf(WIDTH / lanes, MOST_SLICES)
  const tile = form === 'alone' ? ALONE : { SLICES: slices, WORKGROUP: Math.max(slices, LEAST_WORKGROUP) }
  return record<'y'>(both[form], {
    reads: { x, w },
    writes: { y: { shape: [T, WIDTH], format } },
    constants: { WIDTH, EPS: eps, ...rowsOf(op, x), ...tile },
    workgroups: (counts) => fold(leading(x, counts) * tile.SLICES, tile.WORKGROUP),
  }).y
}

const ALONE = { SLICES: 8, WORKGROUP: 32 }
const MOST_SLICES = 256
const LEAST_WORKGROUP = 64

const forms = (width: string): BothSummings =>
  bothSummings({
    name: 'layer_norm',
    reads: ['x', 'w'],
    writes: ['y'],
    shader: [step, rows, width, row, source],
    cost(constants, counts) {
      const values = rowCount(constants, counts) * constants.WIDTH!
      return { flops: 8 * values, bytes: 8 * values }
    },
    cpu: twin,
  })

const twin: Kernel['cpu'] = ({ x, w, y }, { WIDTH, EPS }) => {
  for (let at = 0; at < y!.length; at += WIDTH!) y!.set(normed(x!.subarray(at, at + WIDTH!), w!, EPS!), at)
}

/** The layer norm of one row x [width], w [2, width], in double. */
export function normed(x: View, w: View, eps: number): Float64Array {
  let [sum, squares] = [0, 0]
  for (const v of x) sum += v
  const mean = sum / x.length
  for (const v of x) squares += (v - mean) ** 2
  const scale = 1 / Math.sqrt(squares / x.length + eps)
  return Float64Array.from(x, (v, i) => (v - mean) * scale * w[i]! + w[x.length + i]!)
}

const byVector = forms(vector)
const byScalar = forms(scalar)
