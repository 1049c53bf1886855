import rows from '../../shaders/lib/rows.wgsl' with { type: 'text' }
import step from '../../shaders/lib/step.wgsl' with { type: 'text' }
import source from '../../shaders/nearest_code.wgsl' with { type: 'text' }
import { record } from '../graph/graph.ts'
import { fold, type Kernel } from '../graph/kernel.ts'
import { expectFormat, expectShape, last, leading, type Tensor } from '../graph/tensor.ts'
import { rowCount, rowsOf } from './lib/rows.ts'

/**
 * y[t] = argmax_n x[t] · c_n / max(|c_n|, 1e-12) over the rows c_n of the codebook, the first of several: the code of
 * largest cosine similarity (DAC, Kumar et al. 2023). x [rows, D], codebook [N, D], both f32; y [rows] u32.
 */
export function nearestCode(x: Tensor, codebook: Tensor): Tensor {
  const [T = 1] = x.shape
  const [N = 1] = codebook.shape
  const WIDTH = last(codebook)
  expectShape('nearest_code', 'x', x, [T, WIDTH])
  expectShape('nearest_code', 'codebook', codebook, [N, WIDTH])
  for (const [name, t] of Object.entries({ x, codebook })) expectFormat('nearest_code', name, t, 'f32')
  return record(kernel, {
    reads: { x, codebook },
    writes: { y: { shape: [T], format: 'u32' } },
    constants: { ...rowsOf('nearest_code', x), SIZE: N as number, WIDTH, WORKGROUP },
    workgroups: (counts) => fold(leading(x, counts), WORKGROUP),
  }).y
}

const WORKGROUP = 64

const kernel: Kernel = {
  name: 'nearest_code',
  reads: ['x', 'codebook'],
  writes: ['y'],
  shader: [step, rows, source],
  cost(constants, counts) {
    const { SIZE, WIDTH } = constants as Record<'SIZE' | 'WIDTH', number>
    const T = rowCount(constants, counts)
    return { flops: 4 * T * SIZE * WIDTH, bytes: 4 * (SIZE * WIDTH + T * (WIDTH + 1)) }
  },
  cpu({ x, codebook, y }, { SIZE, WIDTH }) {
    for (let t = 0; t < y!.length; t++) {
      let [best, most] = [0, Number.NEGATIVE_INFINITY]
      for (let n = 0; n < SIZE!; n++) {
        let [product, square] = [0, 0]
        for (let d = 0; d < WIDTH!; d++) {
          const c = codebook![n * WIDTH! + d]!
          product += x![t * WIDTH! + d]! * c
          square += c * c
        }
        const cosine = product / Math.max(Math.sqrt(square), 1e-12)
        if (cosine > most) [best, most] = [n, cosine]
      }
      y![t] = best
    }
  },
}
