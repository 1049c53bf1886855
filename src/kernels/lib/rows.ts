import { ShapeError } from '../../errors.ts'
import type { Constants } from '../../graph/kernel.ts'
import type { Count, Counts, Tensor } from '../../graph/tensor.ts'

/** The constant ROWS that shaders/lib/rows.wgsl reads: a fixed leading dimension, or which count of the run it is. */
export function rowsOf(op: string, t: Tensor): { readonly ROWS: number } {
  const [d = 1] = t.shape
  if (d === '*') throw new ShapeError(`${op}: ${t.label} is a pool [${t.shape}], expected rows of this run`)
  return { ROWS: typeof d === 'number' ? d : -1 - order.indexOf(d) }
}

/** The rows that the constant ROWS stands for in a run. */
export const rowCount = ({ ROWS }: Constants, counts: Counts): number =>
  ROWS! < 0 ? counts[order[-1 - ROWS!]!] : ROWS!

const order: readonly Count[] = ['T', 'S', 'C', 'R'] // as the cases in rows.wgsl
