import columns from '../../shaders/lib/columns.wgsl' with { type: 'text' }
import operandNorm from '../../shaders/lib/operand_norm.wgsl' with { type: 'text' }
import operandPlain from '../../shaders/lib/operand_plain.wgsl' with { type: 'text' }
import rows from '../../shaders/lib/rows.wgsl' with { type: 'text' }
import step from '../../shaders/lib/step.wgsl' with { type: 'text' }
import shared from '../../shaders/lib/sum_shared.wgsl' with { type: 'text' }
import source from '../../shaders/linear_few.wgsl' with { type: 'text' }
import type { LinearVariant } from './lib/linear_tiles.ts'
import { weightPieces } from './lib/weights.ts'

/**
 * The product for one or two rows, of x or of its layer norm. A tile is { WORKGROUP, PER }: lanes, a power of 2, that
 * share the sums of PER columns, 4 or 8.
 */
export const linearFew: LinearVariant = {
  misfit({ target: { limits }, norm, IN }, { SK, WORKGROUP, PER }) {
    if (SK !== 1) return `a sum in ${SK} parts, expected one`
    if (PER !== 4 && PER !== 8) return `${PER} columns, expected 4 or 8`
    if (Math.log2(WORKGROUP!) % 1 !== 0 || WORKGROUP! < 2 * PER)
      return `${WORKGROUP} lanes, expected a power of two from ${2 * PER} on`
    if (WORKGROUP! > limits.invocations) return `${WORKGROUP} invocations, at most ${limits.invocations}`
    const bytes = 2 * WORKGROUP! * (norm ? 64 + 24 : 64) // sums of a lane, moments of two rows
    if (bytes > limits.workgroupBytes) return `${bytes} bytes of workgroup memory, at most ${limits.workgroupBytes}`
    if (IN % 8 !== 0) return `${IN} columns of x, expected a multiple of 8`
    return undefined
  },
  kernel: ({ w, norm }, plain, finish) => ({
    ...plain,
    name: 'linear_few',
    optional: true,
    shader: [step, rows, columns, weightPieces[w.format], norm ? operandNorm : operandPlain, shared, ...finish, source],
  }),
  constants: ({ norm }, { WORKGROUP, PER }) => ({
    ...{ BM: 2, BN: PER!, BLOCK: PER!, SLICES: WORKGROUP! },
    ...(norm && { EPS: norm.eps }),
  }),
}
