import columns from '../../shaders/lib/columns.wgsl' with { type: 'text' }
import rows from '../../shaders/lib/rows.wgsl' with { type: 'text' }
import step from '../../shaders/lib/step.wgsl' with { type: 'text' }
import shared from '../../shaders/lib/sum_shared.wgsl' with { type: 'text' }
import source from '../../shaders/linear_dot.wgsl' with { type: 'text' }
import type { LinearVariant } from './lib/linear_tiles.ts'
import { weightPieces } from './lib/weights.ts'

/** The product for few rows: a workgroup per column, whose lanes share the sum. A tile is { WORKGROUP }, a power of 2. */
export const linearDot: LinearVariant = {
  misfit({ target: { limits }, HALVES }, { WORKGROUP }) {
    if (HALVES !== 1) return 'a column at a time holds no pairs of gate and up'
    if (Math.log2(WORKGROUP!) % 1 !== 0) return `${WORKGROUP} lanes, expected a power of two`
    if (WORKGROUP! > limits.invocations) return `${WORKGROUP} invocations, at most ${limits.invocations}`
    return undefined
  },
  kernel: ({ w }, plain, finish) => ({
    ...plain,
    name: 'linear_dot',
    optional: true,
    shader: [step, rows, columns, weightPieces[w.format], shared, ...finish, source],
  }),
  constants: (_, { WORKGROUP }) => ({ BM: 4, BN: 1, BLOCK: 1, SLICES: WORKGROUP! }),
}
