import source from '../../shaders/advance_codes.wgsl' with { type: 'text' }
import frameStruct from '../../shaders/lib/frame.wgsl' with { type: 'text' }
import step from '../../shaders/lib/step.wgsl' with { type: 'text' }
import { ShapeError } from '../errors.ts'
import { record } from '../graph/graph.ts'
import type { Kernel } from '../graph/kernel.ts'
import { expectFormat, expectShape, last, type Tensor } from '../graph/tensor.ts'
import { frameShape } from './sample_codes.ts'

export interface AdvanceCodes {
  readonly eos: number
  readonly mask: number
  /** Columns of the report. */
  readonly reported: number
}

/**
 * Writes the drawn codes [9] u32 into column `frame.column` of the delayed grid ['*', 9] u32 and moves the state of the
 * end, `ended` [1] u32: the column in which codebook 0 said EOS, 0 before. Running a column again overwrites it.
 *
 * Codebook k is k + 1 columns late (zonos.md 5.1), so that of a column after the given frames the first codebooks are
 * new and the others known. The end: zonos.md 5.2. Returns the report [1 + reported, 9] f32: `ended`, then the last
 * columns up to this one. The grid has a row for column W too, which no run reads.
 */
export function advanceCodes(
  drawn: Tensor,
  frame: Tensor,
  grid: Tensor,
  ended: Tensor,
  { eos, mask, reported }: AdvanceCodes,
): Tensor {
  const op = 'advance_codes'
  const BOOKS = last(grid)
  for (const [name, t] of Object.entries({ drawn, frame, grid, ended })) expectFormat(op, name, t, 'u32')
  expectShape(op, 'drawn', drawn, [BOOKS])
  expectShape(op, 'frame', frame, frameShape)
  expectShape(op, 'grid', grid, ['*', BOOKS])
  expectShape(op, 'ended', ended, [1])
  if (!(Number.isInteger(reported) && reported > 0))
    throw new ShapeError(`${op}: ${reported} columns are reported, expected a positive integer`)
  return record<'grid' | 'ended' | 'report'>(kernel, {
    reads: { drawn, frame },
    writes: { grid, ended, report: { shape: [1 + reported, BOOKS] } },
    constants: { BOOKS, EOS: eos, MASK: mask, REPORTED: reported, WORKGROUP },
    workgroups: [Math.ceil((reported * BOOKS) / WORKGROUP), 1, 1],
  }).report
}

const WORKGROUP = 64

const kernel: Kernel = {
  name: 'advance_codes',
  reads: ['drawn', 'frame'],
  writes: ['grid', 'ended', 'report'],
  shader: [step, frameStruct, source],
  cost: ({ BOOKS, REPORTED }) => ({ flops: 0, bytes: 8 * BOOKS! * REPORTED! }),
  cpu({ drawn, frame, grid, ended, report }, constants) {
    const { BOOKS, EOS, MASK, REPORTED } = constants as Record<string, number>
    const [c, , , ends, , before, wanted, shifted] = frame as unknown as number[]
    const end = before! + wanted!
    if (ended![0] === 0 || ended![0]! >= c!) ended![0] = ends === 1 && drawn![0] === EOS ? c! : 0
    const e = ended![0]!

    const column = grid!.subarray(c! * BOOKS!, (c! + 1) * BOOKS!)
    const codes = drawn!.slice()
    if (e > 0) {
      const j = Math.min(Math.max(c! - e, c! - end - 1), BOOKS! - 1)
      codes.fill(MASK!, 0, j)
      codes[j] = EOS!
    }
    for (let k = 0; k < BOOKS!; k++) {
      const unknown = c! > before! + k && c! <= end + k && c! !== end + BOOKS!
      if (unknown) column[k] = codes[shifted && c! > end ? k - (c! - end) : k]!
    }

    report!.fill(0)
    report![0] = e
    for (let n = Math.max(0, c! + 1 - REPORTED!); n <= c!; n++)
      report!.set(grid!.subarray(n * BOOKS!, (n + 1) * BOOKS!), (REPORTED! - (c! - n)) * BOOKS!)
  },
}
