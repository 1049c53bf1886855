import activation from '../../../shaders/lib/activation.wgsl' with { type: 'text' }
import columns from '../../../shaders/lib/columns.wgsl' with { type: 'text' }
import finishAdd from '../../../shaders/lib/finish_add.wgsl' with { type: 'text' }
import finishBias from '../../../shaders/lib/finish_bias.wgsl' with { type: 'text' }
import finishGelu from '../../../shaders/lib/finish_gelu.wgsl' with { type: 'text' }
import finishGeluTanh from '../../../shaders/lib/finish_gelu_tanh.wgsl' with { type: 'text' }
import finishGlu from '../../../shaders/lib/finish_glu.wgsl' with { type: 'text' }
import finishStore from '../../../shaders/lib/finish_store.wgsl' with { type: 'text' }
import finishSwiglu from '../../../shaders/lib/finish_swiglu.wgsl' with { type: 'text' }
import rows from '../../../shaders/lib/rows.wgsl' with { type: 'text' }
import step from '../../../shaders/lib/step.wgsl' with { type: 'text' }
import source from '../../../shaders/linear.wgsl' with { type: 'text' }
import type { Kernel, View } from '../../graph/kernel.ts'
import { formatBytes } from '../../graph/tensor.ts'
import { normed } from '../layer_norm.ts'
import { gelu, geluTanh, silu } from './activation.ts'
import type { LinearVariant, Product } from './linear_tiles.ts'
import { rowCount } from './rows.ts'
import { weightPieces } from './weights.ts'

/** The algorithm that serves every product on every device. */
export const plain: LinearVariant = {
  misfit: ({ HALVES }, { RN }) => (RN! % HALVES === 0 ? undefined : `${RN} columns hold no pairs of gate and up`),
  kernel: (_, kernel) => kernel,
  constants: (_, { RM, RN, GROUP_X, GROUP_Y }) => ({ BM: RM! * GROUP_Y!, BN: RN! * GROUP_X!, BLOCK: RN! }),
}

/** The WGSL pieces of what happens to a sum. */
export function finishOf({ add, bias, finish }: Product): readonly string[] {
  if (finish === 'store') return [add ? finishAdd : bias ? finishBias : finishStore]
  return [activation, activated[finish]]
}
const activated = { swiglu: finishSwiglu, swiglu_up_first: finishGlu, gelu: finishGelu, gelu_tanh: finishGeluTanh }
const maths = { gelu, gelu_tanh: geluTanh, store: (x: number): number => x }

/** The bindings, the cost and the twin of every variant. */
export function plainKernel(p: Product): Kernel {
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
          if (p.finish === 'swiglu' || p.finish === 'swiglu_up_first')
            y![at] = silu(product(row, gate)) * product(row, up)
          else y![at] = maths[p.finish](product(row, column) + (residual?.[at] ?? bias?.[column] ?? 0))
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
