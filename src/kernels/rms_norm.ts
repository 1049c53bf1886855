import rows from '../../shaders/lib/rows.wgsl' with { type: 'text' }
import scalar from '../../shaders/lib/scalar.wgsl' with { type: 'text' }
import step from '../../shaders/lib/step.wgsl' with { type: 'text' }
import vector from '../../shaders/lib/vector.wgsl' with { type: 'text' }
import source from '../../shaders/rms_norm.wgsl' with { type: 'text' }
import { record } from '../graph/graph.ts'
import { fold, type Kernel } from '../graph/kernel.ts'
import { expectFormat, expectShape, last, leading, type Tensor } from '../graph/tensor.ts'
import { rowCount, rowsOf } from './lib/rows.ts'

export interface RmsNormOptions {
  readonly eps: number
  /** 1: the weights are zero-centred, as Qwen3.5's are, and y takes 1 + w. */
  readonly offset?: 0 | 1
  /** Of y. */
  readonly format?: 'f32' | 'f16'
}

/**
 * y = x / √(mean(x²) + eps) · (offset + w) over each row: root mean square normalisation (Zhang and Sennrich 2019).
 * x [rows, width] f32 or f16, w [width] f32, y [rows, width].
 */
export function rmsNorm(x: Tensor, w: Tensor, { eps, offset = 0, format = 'f32' }: RmsNormOptions): Tensor {
  const [T = 1] = x.shape
  const WIDTH = last(x)
  expectFormat('rms_norm', 'x', x, 'f32', 'f16')
  expectFormat('rms_norm', 'w', w, 'f32')
  expectShape('rms_norm', 'x', x, [T, WIDTH])
  expectShape('rms_norm', 'w', w, [WIDTH])
  return record(WIDTH % 4 === 0 ? byVector : byScalar, {
    reads: { x, w },
    writes: { y: { shape: x.shape, format } },
    constants: { WIDTH, OFFSET: offset, EPS: eps, ...rowsOf('rms_norm', x), SLICES, WORKGROUP },
    workgroups: (counts) => fold(leading(x, counts) * SLICES, WORKGROUP),
  }).y
}

const SLICES = 8
const WORKGROUP = 32

const kernel = (width: string): Kernel => ({
  name: 'rms_norm',
  reads: ['x', 'w'],
  writes: ['y'],
  shader: [step, rows, width, source],
  cost(constants, counts) {
    const values = rowCount(constants, counts) * constants.WIDTH!
    return { flops: 5 * values, bytes: 8 * values }
  },
  cpu({ x, w, y }, constants) {
    const { WIDTH, OFFSET, EPS } = constants as Record<'WIDTH' | 'OFFSET' | 'EPS', number>
    for (let row = 0; row < y!.length; row += WIDTH) {
      let squares = 0
      for (let i = 0; i < WIDTH; i++) squares += x![row + i]! ** 2
      const scale = 1 / Math.sqrt(squares / WIDTH + EPS)
      for (let i = 0; i < WIDTH; i++) y![row + i] = x![row + i]! * scale * (OFFSET + w![i]!)
    }
  },
})

const byVector = kernel(vector)
const byScalar = kernel(scalar)
