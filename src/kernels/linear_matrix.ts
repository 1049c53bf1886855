import columns from '../../shaders/lib/columns.wgsl' with { type: 'text' }
import direct from '../../shaders/lib/fragment_direct.wgsl' with { type: 'text' }
import finished from '../../shaders/lib/fragment_finish.wgsl' with { type: 'text' }
import fragmentRows from '../../shaders/lib/fragment_rows.wgsl' with { type: 'text' }
import fragments from '../../shaders/lib/fragments.wgsl' with { type: 'text' }
import rows from '../../shaders/lib/rows.wgsl' with { type: 'text' }
import stage from '../../shaders/lib/stage.wgsl' with { type: 'text' }
import step from '../../shaders/lib/step.wgsl' with { type: 'text' }
import source from '../../shaders/linear_matrix.wgsl' with { type: 'text' }
import type { Constants } from '../graph/kernel.ts'
import { type LinearVariant, type Product, slicesIn } from './lib/linear_tiles.ts'
import { operandMisfit, operandOf } from './lib/operand.ts'

const features = ['chromium-experimental-subgroup-matrix', 'shader-f16', 'subgroups'] as const

/** Columns of x and of w that are staged together: a tile row is a multiple of 16 bytes. */
const STAGED = 32
/** Fragments of a subgroup in each direction, vec4u of x and of w per invocation: what the shader has names for. */
const MOST = 4
const MOST_CARRIED = 8

const core = [stage, fragments, fragmentRows, source]

/**
 * The product on matrix units. A tile is { BM, BN, BK, WM, WN, SL }: BM x BN sums of WM x WN subgroups, BK terms at
 * once, in each of SL slices of the sum (default 1).
 * Stores are masked at the last row and column, so that y needs no padding and nothing behind it is touched.
 */
export const linearMatrix: LinearVariant = {
  misfit(p, tile) {
    const { target, x, w, IN, HALVES } = p
    const { matrix, subgroupSize, limits } = target
    const missing = features.find((feature) => !target.features.has(feature))
    if (missing) return `the device has no ${missing}`
    if (!matrix || !subgroupSize) return 'the device has no f16 matrix units of one size'
    if (x.format !== 'f16' || w.format !== 'f16') return `x is ${x.format} and w ${w.format}, expected f16`
    const { BM, BN, BK, WM, WN } = tile as Tile
    const SL = slicesIn(tile)
    const crew = WM * WN * subgroupSize
    const threads = SL * crew
    const [RM, RN] = [BM / WM / matrix.M, BN / WN / matrix.N]
    const carried = Math.ceil((Math.max(BM, BN) * BK) / 8 / crew) // vec4u of x or of w by an invocation
    const bytes = SL * Math.max((BM + BN) * (BK + 8) * 2, WM * matrix.M * BN * 4)
    if (operandMisfit(p)) return operandMisfit(p)
    if (IN % STAGED !== 0 || IN % BK !== 0) return `${IN} columns of x, expected a multiple of ${STAGED} and of ${BK}`
    if (RM % 1 !== 0 || RN % HALVES !== 0 || matrix.K % 8 !== 0 || ![1, 2, 4].includes(BK / matrix.K))
      return `fragments of ${matrix.M} x ${matrix.N} x ${matrix.K} do not divide the tile`
    if (RM > MOST || RN > MOST) return `${RM} x ${RN} fragments per subgroup, at most ${MOST} x ${MOST}`
    if (crew % (BK / 8) !== 0) return `${crew} invocations do not share rows of ${BK} terms evenly`
    if (carried > MOST_CARRIED) return `${carried} vec4u carried by an invocation, at most ${MOST_CARRIED}`
    if (threads > limits.invocations) return `${threads} invocations, at most ${limits.invocations}`
    if (bytes > limits.workgroupBytes) return `${bytes} bytes of workgroup memory, at most ${limits.workgroupBytes}`
    return undefined
  },
  kernel: (p, plain, finish) => ({
    ...plain,
    name: 'linear_matrix',
    optional: true,
    packed: ['x', 'w'],
    requires: features as unknown as readonly GPUFeatureName[],
    shader: [step, rows, operandOf(p), columns, ...finish, storesDirectly(p) ? direct : finished, ...core],
  }),
  constants({ target }, tile) {
    const { M, N, K } = target.matrix!
    const { BM, BN, WN } = tile as Tile
    return { BM, BN, BLOCK: BN / WN, FM: M, FN: N, FK: K, SUBGROUP: target.subgroupSize! }
  },
}

type Tile = Constants & Record<'BM' | 'BN' | 'BK' | 'WM' | 'WN', number>

/** Fragments are f32, and rows of y that a subgroup stores have to begin at multiples of 16 bytes. */
const storesDirectly = ({ add, bias, channels, format, HALVES, OUT }: Product): boolean =>
  !add && !bias && !channels && format === 'f32' && HALVES === 1 && OUT % 4 === 0
