import { ShapeError } from '../../errors.ts'
import type { Target } from '../../graph/target.ts'
import type { DeltaDims } from '../delta_prepare.ts'

const features = ['chromium-experimental-subgroup-matrix', 'shader-f16', 'subgroups'] as const
export const matrixFeatures = features as unknown as readonly GPUFeatureName[]

const WIDEST = 128 // heads
const SUBGROUPS = 16 // of a workgroup of delta_chunk_matrix; delta_scan_matrix has 8

/** Why the chunked delta rule cannot run on the target's matrix units; undefined where it can. */
export function matrixMisfit(target: Target, { keyWidth: DK, valueWidth: DV }: DeltaDims): string | undefined {
  const { matrix, subgroupSize, limits, operand } = target
  const missing = features.find((feature) => !target.features.has(feature))
  if (missing) return `the device has no ${missing}`
  if (operand !== 'f16') return `operands are ${operand}, expected f16`
  if (!matrix || !subgroupSize) return 'the device has no f16 matrix units of one size'
  const { M, N, K } = matrix
  if (M !== 16 || N !== 16 || K !== 16) return `fragments are ${M} x ${N} x ${K}, expected 16 x 16 x 16`
  if (DK % 16 !== 0 || DV % 16 !== 0 || DK > WIDEST || DV > WIDEST)
    return `head widths are ${DK} and ${DV}, expected multiples of 16 up to ${WIDEST}`
  const threads = SUBGROUPS * subgroupSize
  if (subgroupSize < 32 || threads > limits.invocations)
    return `${threads} invocations, expected 512 to ${limits.invocations}`
  const bytes = Math.max(scanBytes(DK), chunkBytes(DK, DV))
  if (bytes > limits.workgroupBytes) return `${bytes} bytes of workgroup memory, at most ${limits.workgroupBytes}`
  return undefined
}

export function expectMatrix(op: string, target: Target, dims: DeltaDims): void {
  const misfit = matrixMisfit(target, dims)
  if (misfit) throw new ShapeError(`${op}: ${misfit}; use delta_chunk and delta_scan`)
}

/** Of workgroup memory, as SIZE in shaders/lib/scan_operands.wgsl. */
const scanBytes = (DK: number): number => 16 * (64 * Math.max(DK / 4 + 1, DK / 8 + 13) + 128 * 3 + Math.max(DK, 64) * 4)
/** As SIZE in shaders/delta_chunk_matrix.wgsl, with the gates and decays. */
const chunkBytes = (DK: number, DV: number): number => {
  const wide = Math.max(DK, DV) / 8 + 1
  const out = 64 * ((Math.min(DK, 64) + Math.min(DV, 64)) / 4 + 1)
  return 16 * (Math.max(64 * (wide + Math.max(wide, 10)) + 640, out) + 6 * 16)
}
