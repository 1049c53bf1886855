import source from '../../shaders/fill_random.wgsl' with { type: 'text' }
import hashing from '../../shaders/lib/hash.wgsl' with { type: 'text' }
import step from '../../shaders/lib/step.wgsl' with { type: 'text' }
import { ShapeError } from '../errors.ts'
import { record } from '../graph/graph.ts'
import { fold, type Kernel } from '../graph/kernel.ts'
import { expectFormat, expectShape, rowSize, type Tensor } from '../graph/tensor.ts'
import { hash } from './lib/hash.ts'

export { hash }

/** Values are uniform in [low, high). */
export interface Range {
  readonly low: number
  readonly high: number
}

/**
 * Fills a kept tensor w (f32, f16 or bf16, of a fixed shape) where it lies, for benches that need weights of a shape
 * and no checkpoint. seed [1] u32: another seed, other values. Every device makes the same values, up to the
 * rounding of the format. Hash: Jarzynski and Olano 2020, Hash Functions for GPU Rendering.
 */
export function fillRandom(w: Tensor, seed: Tensor, { low, high }: Range): Tensor {
  const [rows] = w.shape
  expectShape('fill_random', 'seed', seed, [1])
  expectFormat('fill_random', 'seed', seed, 'u32')
  expectFormat('fill_random', 'w', w, 'f32', 'f16', 'bf16')
  if (typeof rows !== 'number')
    throw new ShapeError(`fill_random: w (${w.label}) has shape [${w.shape}], expected a fixed one`)
  const ELEMENTS = rows * rowSize(w)
  const per = w.format === 'f32' ? 4 : 8
  const FORMAT = formats.indexOf(w.format)
  return record(kernel, {
    reads: { seed },
    writes: { w },
    constants: { ELEMENTS, FORMAT, LOW: low, HIGH: high, WORKGROUP },
    workgroups: fold(Math.ceil(ELEMENTS / per), WORKGROUP),
  }).w
}

const WORKGROUP = 64
const formats: readonly string[] = ['f32', 'f16', 'bf16'] // FORMAT counts these

const kernel: Kernel = {
  name: 'fill_random',
  reads: ['seed'],
  writes: ['w'],
  packed: ['w'],
  shader: [step, hashing, source],
  cost: ({ ELEMENTS, FORMAT }) => ({ flops: 0, bytes: ELEMENTS! * (FORMAT === 0 ? 4 : 2) }),
  cpu({ seed, w }, { LOW, HIGH }) {
    const start = hash(seed![0]!)
    for (let i = 0; i < w!.length; i++) w![i] = LOW! + (HIGH! - LOW!) * ((hash((start + i) >>> 0) >>> 8) / 2 ** 24)
  },
}
