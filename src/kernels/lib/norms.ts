import rows from '../../../shaders/lib/rows.wgsl' with { type: 'text' }
import scalar from '../../../shaders/lib/scalar.wgsl' with { type: 'text' }
import step from '../../../shaders/lib/step.wgsl' with { type: 'text' }
import vector from '../../../shaders/lib/vector.wgsl' with { type: 'text' }
import { graphOf, type Made, record } from '../../graph/graph.ts'
import { type Constants, fold, type Kernel } from '../../graph/kernel.ts'
import { last, leading, type Tensor } from '../../graph/tensor.ts'
import { heightsOf } from './heights.ts'
import type { PartsHeight } from './parts.ts'
import { rowsOf } from './rows.ts'
import { type BothSummings, bothSummings, pickSumming, type Summing, slicesOf } from './slices.ts'

/** A kernel that norms rows: by four columns at once or by one, each in both forms of summing. */
export interface NormForms {
  readonly byVector: BothSummings
  readonly byScalar: BothSummings
}

/** `row`: the piece shaders/lib/row_*.wgsl that says which rows, and what it needs; `source`: what becomes of them. */
export function normForms({
  row,
  source,
  ...kernel
}: Pick<Kernel, 'name' | 'reads' | 'writes' | 'cost' | 'cpu'> & {
  readonly row: readonly string[]
  readonly source: string
}): NormForms {
  const form = (width: string): BothSummings => bothSummings({ ...kernel, shader: [step, rows, width, ...row, source] })
  return { byVector: form(vector), byScalar: form(scalar) }
}

export interface RecordedNorm {
  /** There is a row of y for each row of it. */
  readonly rowed: Tensor
  readonly constants: Constants
  /** Of the parts that are added to x, by its rows; absent: there are none. */
  readonly heights?: readonly PartsHeight[]
  /** Of y. */
  readonly format?: 'f32' | 'f16' | undefined
  readonly summing?: Summing | undefined
  /** What is written beside y. */
  readonly also?: Readonly<Record<string, Made>> | undefined
}

/** Records one of the forms over rows as wide as those of x, once for each height that x may have. */
export function recordNorm<W extends string = 'y'>(
  { byVector, byScalar }: NormForms,
  reads: { readonly x: Tensor } & Readonly<Record<string, Tensor>>,
  { rowed, constants, heights = [{ COUNT: 0 }], format = 'f32', summing, also = {} }: RecordedNorm,
): Record<W, Tensor> {
  const { x } = reads
  const WIDTH = last(x)
  const lanes = WIDTH % 4 === 0 ? 4 : 1
  const both = lanes === 4 ? byVector : byScalar
  const { name } = both.alone
  const form = summing ?? pickSumming(graphOf(name, reads).target, both)
  const slices = form === 'alone' ? ALONE.SLICES : slicesOf(WIDTH / lanes, MOST_SLICES)
  const tile = form === 'alone' ? ALONE : { SLICES: slices, WORKGROUP: Math.max(slices, LEAST_WORKGROUP) }
  const own = { WIDTH, ...constants, ...rowsOf(name, rowed), ...tile }
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
