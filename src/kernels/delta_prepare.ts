import source from '../../shaders/delta_prepare.wgsl' with { type: 'text' }
import activation from '../../shaders/lib/activation.wgsl' with { type: 'text' }
import gatesPiece from '../../shaders/lib/gates.wgsl' with { type: 'text' }
import step from '../../shaders/lib/step.wgsl' with { type: 'text' }
import { ShapeError } from '../errors.ts'
import { record } from '../graph/graph.ts'
import { fold, type Kernel } from '../graph/kernel.ts'
import { expectFormat, expectShape, type Tensor } from '../graph/tensor.ts'
import { sigmoid, softplus } from './lib/activation.ts'

/** Heads of a gated delta net. Value head n uses key head floor(n / (valueHeads / keyHeads)). */
export interface DeltaDims {
  readonly keyHeads: number
  readonly valueHeads: number
  readonly keyWidth: number
  readonly valueWidth: number
}

/** The dims as kernel constants, with CHANNELS, the width of [q | k | v]. */
export function deltaConstants(op: string, { keyHeads: NK, valueHeads: NV, keyWidth: DK, valueWidth: DV }: DeltaDims) {
  if (NV % NK !== 0) throw new ShapeError(`${op}: dims have ${NV} value heads, expected a multiple of ${NK} key heads`)
  if (DK % 4 !== 0 || DV % 4 !== 0)
    throw new ShapeError(`${op}: dims have head widths ${DK} and ${DV}, expected multiples of 4`)
  return { NK, NV, DK, DV, CHANNELS: 2 * NK * DK + NV * DV }
}

/**
 * What the delta rule needs: L2-normalised q and k per key head beside v, decay and step size per value head.
 * c ['T', CHANNELS] is [q | k | v] after the convolution, x ['T', CHANNELS + NV·DV + 2·NV] the projection it came from,
 * [qkv | z | b | a], f32 or f16; gateWeights [2, NV]: A_log and dt_bias; all else f32, qkv of the given format.
 * qkv ['T', CHANNELS] = [q^ | k^ | v]: q^ = q · rsqrt(Σ q² + 1e-6) · DK^-0.5, k^ = k · rsqrt(Σ k² + 1e-6).
 * gates ['T', 2·NV] = [g | β]: g = −exp(A_log) · softplus(a + dt_bias), the log of the decay, floored at −88;
 * β = sigmoid(b). Source: Qwen3.5 (transformers, modeling_qwen3_5).
 */
export function deltaPrepare(
  c: Tensor,
  x: Tensor,
  gateWeights: Tensor,
  dims: DeltaDims,
  format: 'f32' | 'f16' = 'f32',
): { qkv: Tensor; gates: Tensor } {
  const { NK, NV, DK, DV, CHANNELS } = deltaConstants('delta_prepare', dims)
  const B_COLUMN = CHANNELS + NV * DV
  const WIDE = B_COLUMN + 2 * NV
  expectShape('delta_prepare', 'c', c, ['T', CHANNELS])
  expectShape('delta_prepare', 'x', x, ['T', WIDE])
  expectShape('delta_prepare', 'gateWeights', gateWeights, [2, NV])
  expectFormat('delta_prepare', 'x', x, 'f32', 'f16')
  for (const [name, t] of Object.entries({ c, gateWeights })) expectFormat('delta_prepare', name, t, 'f32')
  return record(deltaPrepareKernel, {
    reads: { c, x, gateWeights },
    writes: { qkv: { shape: ['T', CHANNELS], format }, gates: { shape: ['T', 2 * NV] } },
    constants: { WORKGROUP, NK, NV, DK, CHANNELS, WIDE, B_COLUMN },
    workgroups: ({ T }) => fold(T * (CHANNELS / 4 + NV), WORKGROUP),
  })
}

const WORKGROUP = 64
const EPS = 1e-6
const FLOOR = -88 // exp of it is below the smallest normal f32: see lib/gates.wgsl

export const deltaPrepareKernel: Kernel = {
  name: 'delta_prepare',
  reads: ['c', 'x', 'gateWeights'],
  writes: ['qkv', 'gates'],
  shader: [step, activation, gatesPiece, source],
  cost: ({ NK, NV, DK, CHANNELS }, { T }) => ({
    flops: T * (2 * NK! * DK! * 3 + NV! * 20),
    bytes: 4 * T * (2 * CHANNELS! + 4 * NV!),
  }),
  cpu({ c, x, gateWeights, qkv, gates }, { NK, NV, DK, CHANNELS, WIDE, B_COLUMN }, { T }) {
    for (let t = 0; t < T; t++) {
      const row = t * CHANNELS!
      for (let head = 0; head < 2 * NK!; head++) {
        const at = row + head * DK!
        let sum = 0
        for (let i = at; i < at + DK!; i++) sum += c![i]! ** 2
        const scale = 1 / Math.sqrt(sum + EPS) / (head < NK! ? Math.sqrt(DK!) : 1)
        for (let i = at; i < at + DK!; i++) qkv![i] = c![i]! * scale
      }
      for (let i = row + 2 * NK! * DK!; i < row + CHANNELS!; i++) qkv![i] = c![i]!
      const gate = t * 2 * NV!
      for (let n = 0; n < NV!; n++) {
        const [aLog, dtBias] = [gateWeights![n]!, gateWeights![NV! + n]!]
        const b = x![t * WIDE! + B_COLUMN! + n]!
        const a = x![t * WIDE! + B_COLUMN! + NV! + n]!
        gates![gate + n] = Math.max(-Math.exp(aLog) * softplus(a + dtBias), FLOOR)
        gates![gate + NV! + n] = sigmoid(b)
      }
    }
  },
}
