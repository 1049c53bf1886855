import columns from '../../shaders/lib/columns.wgsl' with { type: 'text' }
import operandNorm from '../../shaders/lib/operand_norm.wgsl' with { type: 'text' }
import operandPlain from '../../shaders/lib/operand_plain.wgsl' with { type: 'text' }
import rows from '../../shaders/lib/rows.wgsl' with { type: 'text' }
import step from '../../shaders/lib/step.wgsl' with { type: 'text' }
import source from '../../shaders/linear_few.wgsl' with { type: 'text' }
import type { Constants } from '../graph/kernel.ts'
import type { LinearVariant } from './lib/linear_tiles.ts'
import { weightPieces } from './lib/weights.ts'

/**
 * The product for one or two rows, of x or of its layer norm. A tile is { WORKGROUP, LANES, PER }: lanes of a
 * workgroup, those that share the sums of PER columns, 4 or 8, powers of 2.
 */
export const linearFew: LinearVariant = {
  misfit({ target: { limits }, norm, IN }, tile) {
    const { SK, WORKGROUP, LANES, PER } = tile as Tile
    if (SK !== 1) return `a sum in ${SK} parts, expected one`
    if (PER !== 4 && PER !== 8) return `${PER} columns, expected 4 or 8`
    if (Math.log2(LANES) % 1 !== 0 || LANES < 4 * PER)
      return `${LANES} lanes for a sum, expected a power of two from ${4 * PER} on`
    if (Math.log2(WORKGROUP) % 1 !== 0 || WORKGROUP < LANES)
      return `${WORKGROUP} lanes, expected a power of two from ${LANES} on`
    if (WORKGROUP > limits.invocations) return `${WORKGROUP} invocations, at most ${limits.invocations}`
    const bytes = 16 * (space(IN, norm !== undefined, tile as Tile) + WORKGROUP + 32)
    if (bytes > limits.workgroupBytes) return `${bytes} bytes of workgroup memory, at most ${limits.workgroupBytes}`
    if (IN % 8 !== 0) return `${IN} columns of x, expected a multiple of 8`
    return undefined
  },
  kernel: ({ w, norm }, plain, finish) => ({
    ...plain,
    name: 'linear_few',
    optional: true,
    shader: [step, rows, columns, weightPieces[w.format], norm ? operandNorm : operandPlain, ...finish, source],
  }),
  constants: ({ norm, IN }, tile) => {
    const { WORKGROUP, LANES, PER } = tile as Tile
    const SPACE = space(IN, norm !== undefined, tile as Tile)
    return { BM: 2, BN: (PER * WORKGROUP) / LANES, BLOCK: PER, SPACE, ...(norm && { EPS: norm.eps }) }
  },
}

type Tile = Constants & Record<'SK' | 'WORKGROUP' | 'LANES' | 'PER', number>

/** Vec4s of workgroup memory: two rows of operands, then the sums of all lanes. */
const space = (IN: number, norm: boolean, { WORKGROUP, PER }: Tile): number =>
  Math.max(norm ? IN / 2 : 0, (PER / 2) * WORKGROUP)
