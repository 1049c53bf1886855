import source from '../../shaders/causal_conv.wgsl' with { type: 'text' }
import activation from '../../shaders/lib/activation.wgsl' with { type: 'text' }
import segment from '../../shaders/lib/segment.wgsl' with { type: 'text' }
import step from '../../shaders/lib/step.wgsl' with { type: 'text' }
import { ShapeError } from '../errors.ts'
import { record } from '../graph/graph.ts'
import { fold, type Kernel } from '../graph/kernel.ts'
import { tableShapes } from '../graph/segments.ts'
import { expectFormat, expectShape, last, type Tensor } from '../graph/tensor.ts'
import { silu } from './lib/activation.ts'

export interface CausalConvOptions {
  readonly channels: number
  /** First column of x that is convolved. */
  readonly column: number
  /** Taps; the last one meets the current token. */
  readonly kernel: number
}

/**
 * y[t, c] = silu(Σ_j w[c, j] · m[t − (kernel − 1) + j, c]), m = x[:, column .. column + channels): a depthwise
 * convolution, causal inside each segment, without bias (Qwen3.5's gated delta net).
 * x ['T', WIDE] f32 or f16, w [channels, 1, kernel], state ['*', kernel − 1, channels], y ['T', channels], f32.
 * A state slot holds the last rows of m *before* the convolution, oldest first: a segment starts from its slot `from`
 * and leaves its own last rows in slot `to`.
 */
export function causalConv(
  x: Tensor,
  { channels, column, kernel: KERNEL }: CausalConvOptions,
  w: Tensor,
  state: Tensor,
  { segments, segmentOf }: { readonly segments: Tensor; readonly segmentOf: Tensor },
): Tensor {
  const WIDE = last(x)
  expectShape('causal_conv', 'x', x, ['T', WIDE])
  expectShape('causal_conv', 'w', w, [channels, 1, KERNEL])
  expectShape('causal_conv', 'state', state, ['*', KERNEL - 1, channels])
  expectShape('causal_conv', 'segments', segments, tableShapes.segments)
  expectShape('causal_conv', 'segmentOf', segmentOf, tableShapes.segmentOf)
  expectFormat('causal_conv', 'x', x, 'f32', 'f16')
  for (const [name, t] of Object.entries({ w, state })) expectFormat('causal_conv', name, t, 'f32')
  if (column + channels > WIDE)
    throw new ShapeError(
      `causal_conv: x (${x.label}) has ${WIDE} columns, expected at least ${column + channels} (column + channels)`,
    )
  return record(causalConvKernel, {
    reads: { x, w, segments, segmentOf },
    writes: { y: { shape: ['T', channels] }, state },
    constants: { WORKGROUP, WIDE, COLUMN: column, CHANNELS: channels, KERNEL },
    workgroups: ({ T }) => fold(T * channels, WORKGROUP),
  }).y
}

const WORKGROUP = 64

export const causalConvKernel: Kernel = {
  name: 'causal_conv',
  reads: ['x', 'w', 'segments', 'segmentOf'],
  writes: ['y', 'state'],
  shader: [step, segment, activation, source],
  cost: ({ CHANNELS, KERNEL }, { T, S }) => ({
    flops: T * CHANNELS! * (2 * KERNEL! + 5),
    bytes: 4 * CHANNELS! * (2 * T + KERNEL! + 2 * S * (KERNEL! - 1)),
  }),
  cpu({ x, w, segments, y, state }, { WIDE, COLUMN, CHANNELS, KERNEL }, { S }) {
    const past = KERNEL! - 1
    for (let s = 0; s < S; s++) {
      const [start, length, from, to] = segments!.subarray(s * 8) as unknown as [number, number, number, number]
      const slot = (i: number, row: number): number => (i * past + row) * CHANNELS!
      for (let c = 0; c < CHANNELS!; c++) {
        const m = (position: number): number => {
          if (position >= 0) return x![(start + position) * WIDE! + COLUMN! + c]!
          return from === 0 ? 0 : state![slot(from, position + past) + c]!
        }
        for (let i = 0; i < length; i++) {
          let sum = 0
          for (let j = 0; j < KERNEL!; j++) sum += w![c * KERNEL! + j]! * m(i - past + j)
          y![(start + i) * CHANNELS! + c] = silu(sum)
        }
        if (to !== 0) for (let j = 0; j < past; j++) state![slot(to, j) + c] = m(length - past + j)
      }
    }
  },
}
