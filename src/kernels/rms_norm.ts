import partSums from '../../shaders/lib/parts.wgsl' with { type: 'text' }
import rowAdd from '../../shaders/lib/row_add.wgsl' with { type: 'text' }
import rowGather from '../../shaders/lib/row_gather.wgsl' with { type: 'text' }
import rowPlain from '../../shaders/lib/row_plain.wgsl' with { type: 'text' }
import rows from '../../shaders/lib/rows.wgsl' with { type: 'text' }
import scalar from '../../shaders/lib/scalar.wgsl' with { type: 'text' }
import step from '../../shaders/lib/step.wgsl' with { type: 'text' }
import vector from '../../shaders/lib/vector.wgsl' with { type: 'text' }
import source from '../../shaders/rms_norm.wgsl' with { type: 'text' }
import { graphOf, type Made, record } from '../graph/graph.ts'
import { fold, type Kernel, type View } from '../graph/kernel.ts'
import { expectFormat, expectShape, last, leading, type Tensor } from '../graph/tensor.ts'
import { heightsOf } from './lib/heights.ts'
import { type Parts, type PartsHeight, partsOf } from './lib/parts.ts'
import { rowCount, rowsOf } from './lib/rows.ts'
import { type BothSummings, bothSummings, pickSumming, type Summing, slicesOf } from './lib/slices.ts'

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
  return norm(plain, { x, w }, { x, heights: [{ COUNT: 0 }] }, x, options).y
}

/**
 * The residual stream and its norm: sum = x + the sum of the parts of a product, y = rmsNorm(sum). x ['T', width], parts
 * ['T', COUNT·width], w [width]; f32.
 */
export function addRmsNorm(
  x: Tensor,
  parts: Parts | Tensor,
  w: Tensor,
  options: RmsNormOptions,
): { x: Tensor; y: Tensor } {
  const { sums, heights } = addends('add_rms_norm', x, parts, w)
  const reads = { x, parts: sums, w }
  const { sum, y } = norm<'sum' | 'y'>(adding, reads, { x: sums, heights }, x, options, { sum: { shape: x.shape } })
  return { x: sum, y }
}

/** `addRmsNorm` of the rows index[r] alone, for the readout: index ['R'] u32, y ['R', width]. */
export function gatherAddRmsNorm(
  x: Tensor,
  parts: Parts | Tensor,
  w: Tensor,
  index: Tensor,
  options: RmsNormOptions,
): Tensor {
  const { sums, heights } = addends('gather_add_rms_norm', x, parts, w)
  const [R = 1] = index.shape
  expectFormat('gather_add_rms_norm', 'index', index, 'u32')
  expectShape('gather_add_rms_norm', 'index', index, [R])
  return norm(gathering, { x, parts: sums, w, index }, { x: sums, heights }, index, options).y
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

/** Records one of the forms for each height that x may have; there is a row of y for each row of `rowed`. */
function norm<W extends string = 'y'>(
  { byVector, byScalar }: Forms,
  reads: { readonly x: Tensor } & Readonly<Record<string, Tensor>>,
  { x, heights }: { readonly x: Tensor; readonly heights: readonly PartsHeight[] },
  rowed: Tensor,
  { eps, offset = 0, format = 'f32', summing }: RmsNormOptions,
  also: Readonly<Record<string, Made>> = {},
): Record<W, Tensor> {
  const WIDTH = last(reads.x)
  const lanes = WIDTH % 4 === 0 ? 4 : 1
  const both = lanes === 4 ? byVector : byScalar
  const form = summing ?? pickSumming(graphOf(both.alone.name, reads).target, both)
  const slices = form === 'alone' ? ALONE.SLICES : slicesOf(WIDTH / lanes, MOST_SLICES)
  const tile = form === 'alone' ? ALONE : { SLICES: slices, WORKGROUP: Math.max(slices, LEAST_WORKGROUP) }
  const own = { WIDTH, OFFSET: offset, EPS: eps, ...rowsOf(both.alone.name, rowed), ...tile }
  let writes: Record<string, Made | Tensor> = { ...also, y: { shape: [rowed.shape[0] ?? 1, WIDTH], format } }
  for (const { height, serves } of heightsOf(x.shape, heights)) {
    writes = record<string>(both[form], {
      reads,
      writes,
      constants: { ...own, COUNT: height.COUNT },
      workgroups: (counts) =>
        serves(leading(x, counts)) ? fold(leading(rowed, counts) * tile.SLICES, tile.WORKGROUP) : [0, 0, 0],
    })
  }
  return writes as Record<W, Tensor>
}

const ALONE = { SLICES: 8, WORKGROUP: 32 }
const MOST_SLICES = 256 // to sweep: 64, 128, 256
const LEAST_WORKGROUP = 64

interface Forms {
  readonly byVector: BothSummings
  readonly byScalar: BothSummings
}

function forms(name: string, row: readonly string[], reads: readonly string[], writes: readonly string[]): Forms {
  const form = (width: string): BothSummings =>
    bothSummings({ name, reads, writes, shader: [step, rows, width, ...row, source], cost, cpu: twin })
  return { byVector: form(vector), byScalar: form(scalar) }
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

const plain = forms('rms_norm', [rowPlain], ['x', 'w'], ['y'])
const adding = forms('add_rms_norm', [rowAdd, partSums], ['x', 'parts', 'w'], ['sum', 'y'])
const gathering = forms('gather_add_rms_norm', [rowGather, partSums], ['x', 'parts', 'w', 'index'], ['y'])
