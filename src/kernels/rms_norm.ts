import partSums from '../../shaders/lib/parts.wgsl' with { type: 'text' }
import rowAdd from '../../shaders/lib/row_add.wgsl' with { type: 'text' }
import rowGather from '../../shaders/lib/row_gather.wgsl' with { type: 'text' }
import rowPlain from '../../shaders/lib/row_plain.wgsl' with { type: 'text' }
import source from '../../shaders/rms_norm.wgsl' with { type: 'text' }
import type { Kernel, View } from '../graph/kernel.ts'
import { expectFormat, expectShape, last, type Tensor } from '../graph/tensor.ts'
import { normForms, type RecordedNorm, recordNorm } from './lib/norms.ts'
import { type Parts, partsOf } from './lib/parts.ts'
import { rowCount } from './lib/rows.ts'
import type { Summing } from './lib/slices.ts'

export interface RmsNormOptions {
  readonly eps: number
  /** 1: the weights are zero-centred, as Qwen3.5's are, and y takes 1 + w. */
  readonly offset?: 0 | 1
  /** Of y. */
  readonly format?: 'f32' | 'f16'
  /** Default: 'shared' on hardware. */
  readonly summing?: Summing
}

/**
 * y = x / √(mean(x²) + eps) · (offset + w) over each row: root mean square normalisation (Zhang and Sennrich 2019).
 * x [rows, width] f32 or f16, w [width] f32, y [rows, width].
 */
export function rmsNorm(x: Tensor, w: Tensor, options: RmsNormOptions): Tensor {
  const [T = 1] = x.shape
  expectFormat('rms_norm', 'x', x, 'f32', 'f16')
  expectRows('rms_norm', x, w, T)
  return recordNorm(plain, { x, w }, formOf(x, options)).y
}

/**
 * The residual stream and its norm: sum = x + the sum of the parts of a product, y = rmsNorm(sum). x [rows, width], parts
 * [rows, COUNT·width], w [width]; f32.
 */
export function addRmsNorm(
  x: Tensor,
  parts: Parts | Tensor,
  w: Tensor,
  options: RmsNormOptions,
): { x: Tensor; y: Tensor } {
  const { sums, heights } = addends('add_rms_norm', x, parts, w)
  const form = { ...formOf(x, options), heights, also: { sum: { shape: x.shape } } }
  const { sum, y } = recordNorm<'sum' | 'y'>(adding, { x, parts: sums, w }, form)
  return { x: sum, y }
}

/** `addRmsNorm` of the rows index[r] alone: index ['R'] u32, sum and y ['R', width]. */
export function gatherAddRmsNorm(
  x: Tensor,
  parts: Parts | Tensor,
  w: Tensor,
  index: Tensor,
  options: RmsNormOptions,
): { x: Tensor; y: Tensor } {
  const { sums, heights } = addends('gather_add_rms_norm', x, parts, w)
  const [R = 1] = index.shape
  expectFormat('gather_add_rms_norm', 'index', index, 'u32')
  expectShape('gather_add_rms_norm', 'index', index, [R])
  const form = { ...formOf(index, options), heights, also: { sum: { shape: [R, last(x)] } } }
  const { sum, y } = recordNorm<'sum' | 'y'>(gathering, { x, parts: sums, w, index }, form)
  return { x: sum, y }
}

function expectRows(op: string, x: Tensor, w: Tensor, T: Tensor['shape'][number]): void {
  const width = last(x)
  expectFormat(op, 'w', w, 'f32')
  expectShape(op, 'x', x, [T, width])
  expectShape(op, 'w', w, [width])
}

function addends(op: string, x: Tensor, parts: Parts | Tensor, w: Tensor): Parts {
  const [T = 1] = x.shape
  expectFormat(op, 'x', x, 'f32')
  expectRows(op, x, w, T)
  return partsOf(op, parts, x.shape)
}

function formOf(rowed: Tensor, { eps, offset = 0, ...rest }: RmsNormOptions): RecordedNorm {
  return { rowed, constants: { OFFSET: offset, EPS: eps }, ...rest }
}

const cost: Kernel['cost'] = (constants, counts) => {
  const { WIDTH, COUNT } = constants as Record<'WIDTH' | 'COUNT', number>
  const values = rowCount(constants, counts) * WIDTH
  return { flops: (5 + COUNT) * values, bytes: (8 + 4 * COUNT) * values }
}

const twin: Kernel['cpu'] = ({ x, parts, index, w, sum, y }, constants) => {
  const { WIDTH, OFFSET, EPS, COUNT } = constants as Record<'WIDTH' | 'OFFSET' | 'EPS' | 'COUNT', number>
  for (let r = 0; r < y!.length / WIDTH; r++) {
    const t = index ? index[r]! : r
    const v = Float64Array.from(rowOf(x!, t, WIDTH))
    for (let n = 0; n < COUNT; n++) for (const [i, p] of rowOf(parts!, t * COUNT + n, WIDTH).entries()) v[i]! += p
    sum?.set(v, r * WIDTH)
    const scale = 1 / Math.sqrt(v.reduce((squares, a) => squares + a * a, 0) / WIDTH + EPS)
    for (let i = 0; i < WIDTH; i++) y![r * WIDTH + i] = v[i]! * scale * (OFFSET + w![i]!)
  }
}

const rowOf = (x: View, row: number, width: number): View => x.subarray(row * width, (row + 1) * width)

const forms = (name: string, row: readonly string[], reads: readonly string[], writes: readonly string[]) =>
  normForms({ name, row, reads, writes, source, cost, cpu: twin })
const plain = forms('rms_norm', [rowPlain], ['x', 'w'], ['y'])
const adding = forms('add_rms_norm', [rowAdd, partSums], ['x', 'parts', 'w'], ['sum', 'y'])
const gathering = forms('gather_add_rms_norm', [rowGather, partSums], ['x', 'parts', 'w', 'index'], ['sum', 'y'])
