import blocks from '../../shaders/lib/blocks.wgsl' with { type: 'text' }
import columns from '../../shaders/lib/columns.wgsl' with { type: 'text' }
import rows from '../../shaders/lib/rows.wgsl' with { type: 'text' }
import step from '../../shaders/lib/step.wgsl' with { type: 'text' }
import weightBf16 from '../../shaders/lib/weight_bf16.wgsl' with { type: 'text' }
import weightF16 from '../../shaders/lib/weight_f16.wgsl' with { type: 'text' }
import weightF32 from '../../shaders/lib/weight_f32.wgsl' with { type: 'text' }
import weightHalf from '../../shaders/lib/weight_half.wgsl' with { type: 'text' }
import source from '../../shaders/linear_tiled.wgsl' with { type: 'text' }
import type { Constants } from '../graph/kernel.ts'
import type { LinearVariant } from './lib/linear_tiles.ts'

const weightsInF32 = { f32: weightF32, f16: weightF16, bf16: weightBf16, u32: '' }

/**
 * The product from tiles in workgroup memory, for devices without matrix units. A tile is { BM, BN, BK, RM, RN, RUN }:
 * BM x BN sums, RM x RN per invocation, BK terms at once. x decides what is multiplied: f32, with weights of any
 * format, or f16 with f16 weights. Then RUN terms are added up in f16 before they join an f32 sum; RUN = 0 adds up all
 * in f32.
 */
export const linearTiled: LinearVariant = {
  misfit({ target: { limits }, x, w, IN, HALVES }, tile) {
    if (x.format === 'f16' && w.format !== 'f16') return `x is f16 and w ${w.format}, expected both f16, or x f32`
    const { BM, BN, BK, RM, RN, RUN } = tile as Tile
    const threads = (BM / RM) * (BN / RN)
    const bytes = BK * (BM + BN + 4) * (x.format === 'f16' ? 2 : 4)
    if (IN % BK !== 0) return `${IN} columns of x, expected a multiple of ${BK}`
    if (BK % 8 !== 0 || (RUN > 0 && BK % RUN !== 0)) return `${BK} terms are no multiple of 8 and of runs of ${RUN}`
    if (RM % 4 !== 0 || RN % (4 * HALVES) !== 0 || BM % RM !== 0 || BN % RN !== 0)
      return `${RM} x ${RN} sums of an invocation are no quads, or do not divide ${BM} x ${BN}`
    if (RM > 8 || RN > 8) return `${RM} x ${RN} sums of an invocation, at most 8 x 8`
    if (((BM + BN) * BK) / 32 > 2 * threads) return `${threads} invocations carry too little of tiles of ${BK} terms`
    if (threads > limits.invocations) return `${threads} invocations, at most ${limits.invocations}`
    if (bytes > limits.workgroupBytes) return `${bytes} bytes of workgroup memory, at most ${limits.workgroupBytes}`
    return undefined
  },
  kernel({ x, w }, plain, finish) {
    const halves = x.format === 'f16'
    const weight = halves ? weightHalf : weightsInF32[w.format]
    const packed = halves ? [] : ['w']
    return {
      ...plain,
      name: 'linear_tiled',
      optional: true,
      packed,
      shader: [step, rows, columns, weight, ...finish, blocks, source],
    }
  },
  constants(_, tile) {
    const { BM, BN } = tile as Tile
    return { BM, BN, BLOCK: BN }
  },
}

type Tile = Constants & Record<'BM' | 'BN' | 'BK' | 'RM' | 'RN' | 'RUN', number>
