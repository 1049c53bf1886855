import type { Probe } from '../../device/prove.ts'
import { layerProbes } from './layer_probes.ts'
import { linearProbes } from './linear_probes.ts'

/** One for every kernel that is optional. */
export const variantProbes: readonly Probe[] = [...linearProbes, ...layerProbes]
