import source from '../../shaders/dequantize.wgsl' with { type: 'text' }
import baseAdd from '../../shaders/lib/base_add.wgsl' with { type: 'text' }
import baseNone from '../../shaders/lib/base_none.wgsl' with { type: 'text' }
import rows from '../../shaders/lib/rows.wgsl' with { type: 'text' }
import step from '../../shaders/lib/step.wgsl' with { type: 'text' }
import { ShapeError } from '../errors.ts'
import { record } from '../graph/graph.ts'
import { fold, type Kernel } from '../graph/kernel.ts'
import { expectFormat, expectShape, last, leading, type Tensor } from '../graph/tensor.ts'
import { rowCount, rowsOf } from './lib/rows.ts'

/** What turns a code into a vector, all f32. */
export interface Dequantizer {
  readonly codebook: Tensor // [N, D]
  readonly out: Tensor // [C, D, 1]
  readonly bias: Tensor // [C]
}

export interface DequantizeOptions {
  /** The vector is added to this, f32 [rows, C]. */
  readonly add?: Tensor
  /** The vector is taken from this, f32 [rows, C]. */
  readonly from?: Tensor
  readonly format?: 'f32' | 'f16'
}

/**
 * y[t, :] = (add[t, :] +) out · codebook[codes[t]] + bias, or `from` less that: one codebook of a residual quantizer
 * (DAC, Kumar et al. 2023). codes [rows] u32, each below N; y [rows, C].
 */
export function dequantize(
  codes: Tensor,
  { codebook, out, bias }: Dequantizer,
  { add, from, format = 'f32' }: DequantizeOptions = {},
): Tensor {
  const [T = 1] = codes.shape
  const [N = 1] = codebook.shape
  const WIDTH = last(codebook)
  const CHANNELS = last(bias)
  const base = add ?? from
  expectShape('dequantize', 'codes', codes, [T])
  expectFormat('dequantize', 'codes', codes, 'u32')
  expectShape('dequantize', 'codebook', codebook, [N, WIDTH])
  expectShape('dequantize', 'out', out, [CHANNELS, WIDTH, 1])
  expectShape('dequantize', 'bias', bias, [CHANNELS])
  if (add && from) throw new ShapeError('dequantize: has both add and from, expected one of them')
  if (base) expectShape('dequantize', add ? 'add' : 'from', base, [T, CHANNELS])
  for (const [name, t] of Object.entries({ codebook, out, bias, ...(base && { base }) }))
    expectFormat('dequantize', name, t, 'f32')
  const reads = { codes, codebook, w: out, bias, ...(base && { base }) }
  return record<'y'>(base ? onto : alone, {
    reads,
    writes: { y: { shape: [T, CHANNELS], format } },
    constants: {
      ...rowsOf('dequantize', codes),
      ...{ SIZE: N as number, WIDTH, CHANNELS, SIGN: from ? -1 : 1, Y_BINDING: Object.keys(reads).length, WORKGROUP },
    },
    workgroups: (counts) => fold(leading(codes, counts) * CHANNELS, WORKGROUP),
  }).y
}

const WORKGROUP = 64

const kernel = (reads: readonly string[], base: string): Kernel => ({
  name: 'dequantize',
  reads,
  writes: ['y'],
  shader: [step, rows, base, source],
  cost(constants, counts) {
    const { WIDTH, CHANNELS } = constants as Record<'WIDTH' | 'CHANNELS', number>
    const values = rowCount(constants, counts) * CHANNELS
    return { flops: values * (2 * WIDTH + 2), bytes: 4 * (values * (reads.length - 3) + CHANNELS * (WIDTH + 1)) }
  },
  cpu({ codes, codebook, w, bias, base, y }, { SIZE, WIDTH, CHANNELS, SIGN }) {
    for (const [t, asked] of codes!.entries()) {
      const code = Math.min(asked, SIZE! - 1)
      for (let o = 0; o < CHANNELS!; o++) {
        let sum = bias![o]!
        for (let d = 0; d < WIDTH!; d++) sum += w![o * WIDTH! + d]! * codebook![code * WIDTH! + d]!
        const at = t * CHANNELS! + o
        y![at] = (base ? base[at]! : 0) + SIGN! * sum
      }
    }
  },
})
const alone = kernel(['codes', 'codebook', 'w', 'bias'], baseNone)
const onto = kernel(['codes', 'codebook', 'w', 'bias', 'base'], baseAdd)
