import activation from '../../shaders/lib/activation.wgsl' with { type: 'text' }
import rows from '../../shaders/lib/rows.wgsl' with { type: 'text' }
import step from '../../shaders/lib/step.wgsl' with { type: 'text' }
import source from '../../shaders/swiglu.wgsl' with { type: 'text' }
import { ShapeError } from '../errors.ts'
import { record } from '../graph/graph.ts'
import { fold, type Kernel } from '../graph/kernel.ts'
import { expectFormat, expectShape, last, leading, type Tensor } from '../graph/tensor.ts'
import { silu } from './lib/activation.ts'
import { rowCount, rowsOf } from './lib/rows.ts'

/**
 * y[t, i] = silu(gate[t, i]) · up[t, i] of x = [gate | up] (SwiGLU, Shazeer 2020).
 * x [rows, 2·I] f32 or f16, y [rows, I] of `format`.
 */
export function swiglu(x: Tensor, { format = 'f32' }: { readonly format?: 'f32' | 'f16' } = {}): Tensor {
  const [T = 1] = x.shape
  const WIDTH = last(x) / 2
  expectFormat('swiglu', 'x', x, 'f32', 'f16')
  expectShape('swiglu', 'x', x, [T, 2 * WIDTH])
  if (!Number.isInteger(WIDTH))
    throw new ShapeError(`swiglu: x (${x.label}) has ${last(x)} columns, expected gate and up of the same width`)
  return record(kernel, {
    reads: { x },
    writes: { y: { shape: [T, WIDTH], format } },
    constants: { WIDTH, ...rowsOf('swiglu', x), WORKGROUP },
    workgroups: (counts) => fold(leading(x, counts) * WIDTH, WORKGROUP),
  }).y
}

const WORKGROUP = 64

const kernel: Kernel = {
  name: 'swiglu',
  reads: ['x'],
  writes: ['y'],
  shader: [step, rows, activation, source],
  cost(constants, counts) {
    const values = rowCount(constants, counts) * constants.WIDTH!
    return { flops: 6 * values, bytes: 12 * values }
  },
  cpu({ x, y }, { WIDTH }) {
    for (let at = 0; at < y!.length; at++) {
      const gate = at + Math.floor(at / WIDTH!) * WIDTH!
      y![at] = silu(x![gate]!) * x![gate + WIDTH!]!
    }
  },
}
