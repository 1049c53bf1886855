import type { Precision, Target } from '../graph/target.ts'
import type { DeviceReport } from './device.ts'

/** What the user sees: which device, why, in which number formats, and what is switched off. */
export function describe(
  target: Target,
  { name, why, precision }: { name: string; why: string; precision: Precision },
): DeviceReport {
  const { operand, cache } = target
  const dtype = operand === cache ? operand : `${operand}, cache ${cache}`
  const disabled = [...target.disabled].map(([variant, reason]) => ({ variant, reason }))
  const features = [...target.features].sort()
  const off = disabled.length ? `; switched off: ${disabled.map((d) => `${d.variant} (${d.reason})`).join(', ')}` : ''
  const software = target.kind === 'webgpu' && target.software
  return {
    kind: target.kind,
    name,
    why,
    precision,
    software,
    dtype,
    features,
    disabled,
    line: `${name}${software ? ' (software)' : ''}, ${dtype}: ${why}${off}`,
  }
}
