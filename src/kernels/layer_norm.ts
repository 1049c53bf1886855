import source from '../../shaders/layer_norm.wgsl' with { type: 'text' }
import partSums from '../../shaders/lib/parts.wgsl' with { type: 'text' }
import rowAddBias from '../../shaders/lib/row_add_bias.wgsl' with { type: 'text' }
import rowPlain from '../../shaders/lib/row_plain.wgsl' with { type: 'text' }
import type { Kernel, View } from '../graph/kernel.ts'
import { expectFormat, expectShape, last, type Tensor } from '../graph/tensor.ts'
import { normForms, recordNorm } from './lib/norms.ts'
import { type Parts, partsOf } from './lib/parts.ts'
import { rowCount } from './lib/rows.ts'
import type { Summing } from './lib/slices.ts'

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
export function layerNorm(x: Tensor, w: Tensor, { eps, ...rest }: LayerNormOptions): Tensor {
  expectFormat('layer_norm', 'x', x, 'f32', 'f16')
  expectRows('layer_norm', x, w)
  return recordNorm(plain, { x, w }, { rowed: x, constants: { EPS: eps }, ...rest }).y
}

/**
 * The residual stream and its norm: sum = x + the sum of the parts of a product + bias, y = layerNorm(sum). x [rows,
 * width], parts [rows, COUNT·width], bias [width]: the product's, w [2, width]; f32.
 */
export function addLayerNorm(
  x: Tensor,
  parts: Parts | Tensor,
  bias: Tensor,
  w: Tensor,
  { eps, ...rest }: LayerNormOptions,
): { x: Tensor; y: Tensor } {
  const op = 'add_layer_norm'
  expectFormat(op, 'x', x, 'f32')
  expectRows(op, x, w)
  expectFormat(op, 'bias', bias, 'f32')
  expectShape(op, 'bias', bias, [last(x)])
  const { sums, heights } = partsOf(op, parts, x.shape)
  const form = { rowed: x, constants: { EPS: eps }, heights, also: { sum: { shape: x.shape } }, ...rest }
  const { sum, y } = recordNorm<'sum' | 'y'>(adding, { x, parts: sums, bias, w }, form)
  return { x: sum, y }
}

function expectRows(op: string, x: Tensor, w: Tensor): void {
  const [T = 1] = x.shape
  expectFormat(op, 'w', w, 'f32')
  expectShape(op, 'x', x, [T, last(x)])
  expectShape(op, 'w', w, [2, last(x)])
}

const cost: Kernel['cost'] = (constants, counts) => {
  const { WIDTH, COUNT } = constants as Record<'WIDTH' | 'COUNT', number>
  const values = rowCount(constants, counts) * WIDTH
  return { flops: (8 + COUNT) * values, bytes: (8 + 4 * COUNT) * values }
}

const twin: Kernel['cpu'] = ({ x, parts, bias, w, sum, y }, constants) => {
  const { WIDTH, EPS, COUNT } = constants as Record<'WIDTH' | 'EPS' | 'COUNT', number>
  for (let at = 0; at < y!.length; at += WIDTH) {
    const v = Float64Array.from(x!.subarray(at, at + WIDTH), (a, i) => a + (bias?.[i] ?? 0))
    for (let n = 0; n < COUNT; n++) for (let i = 0; i < WIDTH; i++) v[i]! += parts![at * COUNT + n * WIDTH + i]!
    sum?.set(v, at)
    y!.set(normed(v, w!, EPS), at)
  }
}

/** The layer norm of one row x [width], w [2, width], in double. */
export function normed(x: View | Float64Array, w: View, eps: number): Float64Array {
  let [sum, squares] = [0, 0]
  for (const v of x) sum += v
  const mean = sum / x.length
  for (const v of x) squares += (v - mean) ** 2
  const scale = 1 / Math.sqrt(squares / x.length + eps)
  return Float64Array.from(x, (v, i) => (v - mean) * scale * w[i]! + w[x.length + i]!)
}

const plain = normForms({
  name: 'layer_norm',
  row: [rowPlain],
  reads: ['x', 'w'],
  writes: ['y'],
  source,
  cost,
  cpu: twin,
})
const adding = normForms({
  name: 'add_layer_norm',
  row: [rowAddBias, partSums],
  reads: ['x', 'parts', 'bias', 'w'],
  writes: ['sum', 'y'],
  source,
  cost,
  cpu: twin,
})
