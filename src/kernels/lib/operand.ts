import rows from '../../../shaders/lib/operand_rows.wgsl' with { type: 'text' }
import window from '../../../shaders/lib/operand_window.wgsl' with { type: 'text' }
import type { Product } from './linear_tiles.ts'

/** The WGSL piece by which a product reads x: its rows, or the windows of a convolution. */
export const operandOf = ({ channels }: Product): string => (channels === undefined ? rows : window)

/** Why tiles cannot read x; undefined where they can. */
export const operandMisfit = ({ channels = 8 }: Product): string | undefined =>
  channels % 8 === 0 ? undefined : `windows of ${channels} channels, expected a multiple of 8`
