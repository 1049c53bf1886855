import source from '../../shaders/gated_rms_norm.wgsl' with { type: 'text' }
import activation from '../../shaders/lib/activation.wgsl' with { type: 'text' }
import rows from '../../shaders/lib/rows.wgsl' with { type: 'text' }
import step from '../../shaders/lib/step.wgsl' with { type: 'text' }
import { ShapeError } from '../errors.ts'
import { graphOf, record } from '../graph/graph.ts'
import { fold, type Kernel } from '../graph/kernel.ts'
import { expectFormat, expectShape, last, leading, type Tensor } from '../graph/tensor.ts'
import { silu } from './lib/activation.ts'
import { rowCount, rowsOf } from './lib/rows.ts'
import { bothSummings, pickSumming, type Summing, slicesOf } from './lib/slices.ts'

/** Columns `column`.. of a wider tensor: a part of a packed projection. */
export interface Columns {
  readonly of: Tensor
  readonly column: number
}

export interface GatedRmsNormOptions {
  readonly eps: number
  /** Of y. */
  readonly format?: 'f32' | 'f16'
  /** Default: 'shared' on hardware. */
  readonly summing?: Summing
}

/**
 * y[t, h, :] = x[t, h, :] / √(mean(x[t, h, :]²) + eps) · w · silu(z[t, h, :]): Qwen3.5's output norm of the gated delta
 * rule, which norms first and gates then. x [rows, H·D] f32 or f16, z as many columns of a projection [rows, wide],
 * w [D] f32, y [rows, H·D]. D is a multiple of 4.
 */
export function gatedRmsNorm(
  x: Tensor,
  z: Columns,
  w: Tensor,
  { eps, format = 'f32', summing }: GatedRmsNormOptions,
): Tensor {
  const [T = 1] = x.shape
  const [width, D, wide] = [last(x), last(w), last(z.of)]
  expectFormat('gated_rms_norm', 'x', x, 'f32', 'f16')
  expectFormat('gated_rms_norm', 'z', z.of, 'f32', 'f16')
  expectFormat('gated_rms_norm', 'w', w, 'f32')
  expectShape('gated_rms_norm', 'x', x, [T, width])
  expectShape('gated_rms_norm', 'z', z.of, [T, wide])
  expectShape('gated_rms_norm', 'w', w, [D])
  if (width % D !== 0)
    throw new ShapeError(`gated_rms_norm: x (${x.label}) has ${width} columns, expected a multiple of w's ${D}`)
  if (D % 4 !== 0) throw new ShapeError(`gated_rms_norm: w (${w.label}) has ${D} elements, expected a multiple of 4`)
  if (!(z.column >= 0 && z.column + width <= wide))
    throw new ShapeError(
      `gated_rms_norm: z (${z.of.label}) has ${wide} columns, expected at least ${width} from column ${z.column} on`,
    )
  const HEADS = width / D
  const form = summing ?? pickSumming(graphOf('gated_rms_norm', { x, z: z.of, w }).target, kernels)
  const tile = form === 'alone' ? ALONE : { SLICES: slicesOf(D / 4, MOST_SLICES), WORKGROUP: SHARED_WORKGROUP }
  return record(kernels[form], {
    reads: { x, z: z.of, w },
    writes: { y: { shape: x.shape, format } },
    constants: {
      HEADS,
      D,
      EPS: eps,
      Z_WIDTH: wide,
      Z_COLUMN: z.column,
      ...rowsOf('gated_rms_norm', x),
      ...tile,
    },
    workgroups: (counts) => fold(leading(x, counts) * HEADS * tile.SLICES, tile.WORKGROUP),
  }).y
}

const ALONE = { SLICES: 8, WORKGROUP: 64 }
const MOST_SLICES = 32 // to sweep: 16, 32, 64
const SHARED_WORKGROUP = 128 // to sweep: 64, 128, 256

type Constant = 'HEADS' | 'D' | 'EPS' | 'Z_WIDTH' | 'Z_COLUMN'

const kernel: Kernel = {
  name: 'gated_rms_norm',
  reads: ['x', 'z', 'w'],
  writes: ['y'],
  shader: [step, rows, activation, source],
  cost(constants, counts) {
    const values = rowCount(constants, counts) * constants.HEADS! * constants.D!
    return { flops: 10 * values, bytes: 12 * values }
  },
  cpu({ x, z, w, y }, constants) {
    const { HEADS, D, EPS, Z_WIDTH, Z_COLUMN } = constants as Record<Constant, number>
    for (let head = 0; head < y!.length / D; head++) {
      const start = head * D
      const gate = Math.floor(head / HEADS) * Z_WIDTH + Z_COLUMN + (head % HEADS) * D
      let squares = 0
      for (let i = 0; i < D; i++) squares += x![start + i]! ** 2
      const scale = 1 / Math.sqrt(squares / D + EPS)
      for (let i = 0; i < D; i++) y![start + i] = x![start + i]! * scale * w![i]! * silu(z![gate + i]!)
    }
  },
}

const kernels = bothSummings(kernel)
