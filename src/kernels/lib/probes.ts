import type { Probe } from '../../device/prove.ts'

/** One for every kernel that is optional. */
export const variantProbes: readonly Probe[] = []
