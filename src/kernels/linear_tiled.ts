import blocks from '../../shaders/lib/blocks.wgsl' with { type: 'text' }
import columns from '../../shaders/lib/columns.wgsl' with { type: 'text' }
import rows from '../../shaders/lib/rows.wgsl' with { type: 'text' }
import step from '../../shaders/lib/step.wgsl' with { type: 'text' }
import weight4Bf16 from '../../shaders/lib/weight4_bf16.wgsl' with { type: 'text' }
import weight4F16 from '../../shaders/lib/weight4_f16.wgsl' with { type: 'text' }
import weight4F32 from '../../shaders/lib/weight4_f32.wgsl' with { type: 'text' }
import source from '../../shaders/linear_tiled.wgsl' with { type: 'text' }
import type { Constants } from '../graph/kernel.ts'
import type { LinearVariant } from './lib/linear_tiles.ts'
import { operandMisfit, operandOf } from './lib/operand.ts'

const weights = { f32: weight4F32, f16: weight4F16, bf16: weight4Bf16, q8: '', u32: '' }

/**
 * The product from tiles in workgroup memory, for devices without matrix units. A tile is { BM, BN, RM, RN,
 * MORTON }: BM x BN sums, RM x RN per invocation, neighbours in Morton order (1) or line by line (0). BK is 16.
 * Whatever x and w are stored as, all is added up in f32.
 */
export const linearTiled: LinearVariant = {
  misfit(p, tile) {
    const { w, IN, HALVES } = p
    if (w.format === 'q8') return 'w is q8, expected f32, f16 or bf16'
    const { limits } = p.target
    const { BM, BN, BK, RM, RN } = tile as Tile
    const threads = (BM / RM) * (BN / RN)
    const bytes = BK * (BM + BN + 4) * 4
    if (operandMisfit(p)) return operandMisfit(p)
    if (IN % BK !== 0) return `${IN} columns of x, expected a multiple of ${BK}`
    if (BK !== 16) return `tiles of ${BK} terms, expected 16`
    if (![4, 8].includes(RM) || ![4, 8].includes(RN) || RN < 4 * HALVES)
      return `${RM} x ${RN} sums of an invocation, expected 4 or 8 x ${HALVES === 2 ? '8' : '4 or 8'}`
    if (BM % (4 * RM) !== 0 || BN % (8 * RN) !== 0)
      return `tiles of ${BM} x ${BN} sums, expected multiples of ${4 * RM} x ${8 * RN}`
    if (Math.max(BM, BN) > threads) return `${threads} invocations carry too little of ${BM} x ${BN} rows`
    if (threads > limits.invocations) return `${threads} invocations, at most ${limits.invocations}`
    if (bytes > limits.workgroupBytes) return `${bytes} bytes of workgroup memory, at most ${limits.workgroupBytes}`
    return undefined
  },
  kernel(p, plain, finish) {
    const shader = [step, rows, operandOf(p), columns, weights[p.w.format], ...finish, blocks, source]
    return { ...plain, name: 'linear_tiled', optional: true, shader } // w stays packed
  },
  constants(_, tile) {
    const { BM, BN } = tile as Tile
    return { BM, BN, BLOCK: BN }
  },
}

type Tile = Constants & Record<'BM' | 'BN' | 'BK' | 'RM' | 'RN' | 'MORTON', number>
