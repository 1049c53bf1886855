import type { Precision, Target } from '../graph/target.ts'
import type { DeviceReport } from './device.ts'

export interface About {
  readonly name: string
  readonly why: string
  readonly precision: Precision
  readonly adapter?: string | undefined
  readonly tuned?: string | undefined
}

/** What the user sees: which device, why, in which number formats, and what is switched off. */
export function describe(target: Target, { name, why, precision, adapter = name, tuned }: About): DeviceReport {
  const { operand, cache } = target
  const dtype = operand === cache ? operand : `${operand}, cache ${cache}`
  const disabled = [...target.disabled].map(([variant, reason]) => ({ variant, reason }))
  const features = [...target.features].sort()
  const off = disabled.length ? `; switched off: ${disabled.map((d) => `${d.variant} (${d.reason})`).join(', ')}` : ''
  const measured = tuned === undefined ? '' : `; tuned ${tuned}`
  const software = target.kind === 'webgpu' && target.software
  return {
    kind: target.kind,
    name,
    adapter,
    why,
    precision,
    software,
    dtype,
    features,
    disabled,
    tuned,
    line: `${name}${software ? ' (software)' : ''}, ${dtype}: ${why}${measured}${off}`,
  }
}
