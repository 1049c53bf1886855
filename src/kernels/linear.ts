import finishAdd from '../../shaders/lib/finish_add.wgsl' with { type: 'text' }
import finishStore from '../../shaders/lib/finish_store.wgsl' with { type: 'text' }
import rows from '../../shaders/lib/rows.wgsl' with { type: 'text' }
import step from '../../shaders/lib/step.wgsl' with { type: 'text' }
import weightBf16 from '../../shaders/lib/weight_bf16.wgsl' with { type: 'text' }
import weightF16 from '../../shaders/lib/weight_f16.wgsl' with { type: 'text' }
import weightF32 from '../../shaders/lib/weight_f32.wgsl' with { type: 'text' }
import source from '../../shaders/linear.wgsl' with { type: 'text' }
import { ShapeError } from '../errors.ts'
import { record } from '../graph/graph.ts'
import type { Kernel, Workgroups } from '../graph/kernel.ts'
import { type Counts, expectFormat, expectShape, last, leading, type Tensor } from '../graph/tensor.ts'
import { rowCount, rowsOf } from './lib/rows.ts'

export interface LinearOptions {
  /** Added to y: f32, of y's shape. */
  readonly add?: Tensor
  /** Of y; only f32 together with `add`. */
  readonly format?: 'f32' | 'f16'
}

/**
 * y[t, o] = Σ_i x[t, i] · w[o, i] (+ add[t, o]): a linear layer without bias, its weight as PyTorch stores it.
 * x [rows, IN] f32 or f16, w [OUT, IN] f32, f16 or bf16, y [rows, OUT]. IN is a multiple of 8. Sums are f32.
 */
export function linear(x: Tensor, w: Tensor, { add, format = 'f32' }: LinearOptions = {}): Tensor {
  const [T = 1] = x.shape
  const [OUT] = w.shape
  const IN = last(x)
  expectFormat('linear', 'x', x, 'f32', 'f16')
  expectFormat('linear', 'w', w, 'f32', 'f16', 'bf16')
  expectShape('linear', 'x', x, [T, IN])
  if (typeof OUT !== 'number')
    throw new ShapeError(`linear: w (${w.label}) has shape [${w.shape}], expected [OUT, ${IN}] of a fixed OUT`)
  expectShape('linear', 'w', w, [OUT, IN])
  if (IN % 8 !== 0)
    throw new ShapeError(`linear: x (${x.label}) has ${IN} columns, expected a multiple of 8; pad x and w with zeros`)

  const y = { shape: [T, OUT], format }
  const constants = { IN, OUT, ...rowsOf('linear', x), ...tile, Y_BINDING: add ? 3 : 2 }
  const workgroups = (counts: Counts): Workgroups => [
    Math.ceil(OUT / (tile.RN * tile.GROUP_X)),
    Math.ceil(leading(x, counts) / (tile.RM * tile.GROUP_Y)),
    1,
  ]
  const { store, residual } = kernels[w.format as WeightFormat]
  if (!add) return record(store, { reads: { x, w }, writes: { y }, constants, workgroups }).y
  expectShape('linear', 'add', add, y.shape)
  expectFormat('linear', 'add', add, 'f32')
  if (format !== 'f32') throw new ShapeError(`linear: format is ${format}, expected f32 with add; leave it out`)
  return record(residual, { reads: { x, w, residual: add }, writes: { y }, constants, workgroups }).y
}

/** Rows and columns of y per invocation, and invocations per workgroup: 4 x 4 was the fastest of those tried. */
const tile = { RM: 4, RN: 4, GROUP_X: 16, GROUP_Y: 4 }

type WeightFormat = 'f32' | 'f16' | 'bf16'

function kernel(weight: string, weightBytes: number, finish: string, reads: readonly string[]): Kernel {
  return {
    name: 'linear',
    reads,
    writes: ['y'],
    packed: ['w'],
    shader: [step, rows, weight, finish, source],
    cost(constants, counts) {
      const { IN, OUT } = constants as { IN: number; OUT: number }
      const T = rowCount(constants, counts)
      const values = T * (IN + OUT * (reads.length - 1))
      return { flops: 2 * T * IN * OUT, bytes: IN * OUT * weightBytes + values * 4 }
    },
    cpu({ x, w, residual, y }, { IN, OUT }) {
      for (let at = 0; at < y!.length; at++) {
        const [row, column] = [Math.floor(at / OUT!) * IN!, (at % OUT!) * IN!]
        let sum = 0
        for (let i = 0; i < IN!; i++) sum += x![row + i]! * w![column + i]!
        y![at] = sum + (residual?.[at] ?? 0)
      }
    },
  }
}

const variants = (weight: string, weightBytes: number) => ({
  store: kernel(weight, weightBytes, finishStore, ['x', 'w']),
  residual: kernel(weight, weightBytes, finishAdd, ['x', 'w', 'residual']),
})

const kernels: Record<WeightFormat, ReturnType<typeof variants>> = {
  f32: variants(weightF32, 4),
  f16: variants(weightF16, 2),
  bf16: variants(weightBf16, 2),
}
