import source from '../../shaders/conv_prepare.wgsl' with { type: 'text' }
import activation from '../../shaders/lib/activation.wgsl' with { type: 'text' }
import gatesPiece from '../../shaders/lib/gates.wgsl' with { type: 'text' }
import segment from '../../shaders/lib/segment.wgsl' with { type: 'text' }
import shared from '../../shaders/lib/sum_shared.wgsl' with { type: 'text' }
import { ShapeError } from '../errors.ts'
import { graphOf, record } from '../graph/graph.ts'
import type { Kernel } from '../graph/kernel.ts'
import { CHUNK, tableShapes } from '../graph/segments.ts'
import { expectFormat, expectShape, type Tensor } from '../graph/tensor.ts'
import { causalConv, causalConvKernel } from './causal_conv.ts'
import { type DeltaDims, deltaConstants, deltaPrepare, deltaPrepareKernel } from './delta_prepare.ts'
import { slicesOf } from './lib/slices.ts'

export interface ConvPrepare extends DeltaDims {
  /** Taps of the convolution. */
  readonly kernel: number
  /** Of qkv. Default f32. */
  readonly format?: 'f32' | 'f16'
  /** Default: 'fused' on hardware where heads and taps fit, else `causalConv` and `deltaPrepare`. */
  readonly form?: 'fused' | 'separate'
}

/**
 * From a layer's projection to what the delta rule takes, in one dispatch: `causalConv` over [q | k | v], the first
 * columns of x, then `deltaPrepare`; shapes and state slots as theirs.
 * x ['T', CHANNELS + NV·DV + 2·NV] = [qkv | z | b | a] f32 or f16, w [CHANNELS, 1, kernel], gateWeights [2, NV], state
 * ['*', kernel − 1, CHANNELS] f32. Returns qkv ['T', CHANNELS] = [q^ | k^ | v] and gates ['T', 2·NV] = [g | β] f32.
 */
export function convPrepare(
  x: Tensor,
  w: Tensor,
  gateWeights: Tensor,
  state: Tensor,
  tables: { readonly segments: Tensor; readonly segmentOf: Tensor; readonly chunks: Tensor },
  { kernel: KERNEL, format = 'f32', form, ...dims }: ConvPrepare,
): { qkv: Tensor; gates: Tensor } {
  const op = 'conv_prepare'
  const { segments, chunks } = tables
  const { NK, NV, DK, DV, CHANNELS } = deltaConstants(op, dims)
  const B_COLUMN = CHANNELS + NV * DV
  const WIDE = B_COLUMN + 2 * NV
  const SLICES = slicesOf(Math.max(DK, DV) / 4, WORKGROUP)
  const { software, disabled } = graphOf(op, { x, w, gateWeights, segments, chunks }).target
  const fits = WIDE % 4 === 0 && KERNEL === 4 && Math.max(DK, DV) <= 4 * WORKGROUP
  const pick = software || !fits || disabled.has(op) ? 'separate' : 'fused'
  if ((form ?? pick) === 'separate') {
    const c = causalConv(x, { channels: CHANNELS, column: 0, kernel: KERNEL }, w, state, tables)
    return deltaPrepare(c, x, gateWeights, dims, format)
  }
  if (!fits)
    throw new ShapeError(
      `${op}: dims have ${KERNEL} taps and rows of ${WIDE}, expected 4 and a multiple of 4, heads up to ${4 * WORKGROUP}; leave the form open`,
    )
  expectShape(op, 'x', x, ['T', WIDE])
  expectShape(op, 'w', w, [CHANNELS, 1, KERNEL])
  expectShape(op, 'gateWeights', gateWeights, [2, NV])
  expectShape(op, 'state', state, ['*', KERNEL - 1, CHANNELS])
  expectShape(op, 'segments', segments, tableShapes.segments)
  expectShape(op, 'chunks', chunks, tableShapes.chunks)
  expectFormat(op, 'x', x, 'f32', 'f16')
  for (const [name, t] of Object.entries({ w, gateWeights, state })) expectFormat(op, name, t, 'f32')
  const { qkv, gates } = record<'qkv' | 'gates' | 'state'>(kernel, {
    reads: { x, w, gateWeights, segments, chunks },
    writes: { qkv: { shape: ['T', CHANNELS], format }, gates: { shape: ['T', 2 * NV] }, state },
    constants: { WORKGROUP, SLICES, TOKENS, NK, NV, DK, DV, CHANNELS, WIDE, B_COLUMN, KERNEL, COLUMN: 0 },
    workgroups: ({ C }) => [C, CHUNK / TOKENS, Math.ceil(((2 * NK + NV) * SLICES) / WORKGROUP)],
  })
  return { qkv, gates }
}

const WORKGROUP = 128 // to sweep: 64, 128, 256
const TOKENS = 8 // of a workgroup, of 4 at a time; to sweep: 4, 8, 16

const kernel: Kernel = {
  name: 'conv_prepare',
  reads: ['x', 'w', 'gateWeights', 'segments', 'chunks'],
  writes: ['qkv', 'gates', 'state'],
  shader: [segment, activation, gatesPiece, shared, source],
  // 0.8B and 2B, 228 tokens: 11 MB read and written, 3 us at 4 TB/s.
  cost({ NV, CHANNELS, KERNEL }, { T, S }) {
    const bytes = 4 * (CHANNELS! * (2 * T + KERNEL! + 2 * S * (KERNEL! - 1)) + 4 * T * NV!)
    return { flops: T * (CHANNELS! * (2 * KERNEL! + 8) + NV! * 20), bytes }
  },
  cpu(views, constants, counts) {
    const { qkv } = views
    causalConvKernel.cpu({ ...views, y: qkv! }, constants, counts)
    deltaPrepareKernel.cpu({ ...views, c: qkv!.slice() }, constants, counts)
  },
}
