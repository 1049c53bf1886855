import type { Format, Tensor } from '../../graph/tensor.ts'
import type { ConvWeights } from '../../kernels/conv1d.ts'
import type { Dequantizer } from '../../kernels/dequantize.ts'
import type { Weights } from '../../weights/load.ts'
import type { DacConfig } from './config.ts'

/** Snakes are their alpha, [1, C, 1]. */
export interface ResidualUnit {
  readonly snake1: Tensor
  readonly conv1: ConvWeights // 7 taps, dilated
  readonly snake2: Tensor
  readonly conv2: ConvWeights // 1 tap
}

export interface DecoderBlock {
  readonly snake1: Tensor
  readonly convT1: ConvWeights // transposed, 2 · stride taps, half the channels
  readonly units: readonly ResidualUnit[]
}

export interface DecoderWeights {
  readonly conv1: ConvWeights
  readonly blocks: readonly DecoderBlock[]
  readonly snake1: Tensor
  readonly conv2: ConvWeights
}

export interface EncoderBlock {
  readonly units: readonly ResidualUnit[]
  readonly snake1: Tensor
  readonly conv1: ConvWeights // 2 · stride taps, twice the channels
}

export interface EncoderWeights {
  readonly conv1: ConvWeights
  readonly blocks: readonly EncoderBlock[]
  readonly snake1: Tensor
  readonly conv2: ConvWeights
}

/** One codebook of the residual quantizer. */
export interface Quantizer extends Dequantizer {
  readonly in: ConvWeights
}

export interface DacWeights {
  readonly quantizers: readonly Quantizer[]
  readonly decoder: DecoderWeights
  readonly encoder: EncoderWeights
}

/** Dilations of a block's residual units. */
export const dilations: readonly number[] = [1, 3, 9]

/**
 * Asks for every tensor of the codec; shapes are checked against the config. The decoder's matrices are in the format
 * of the load; the encoder and the quantizers stay f32, where rounding would turn codes over.
 */
export function dacWeights(w: Weights, c: DacConfig): DacWeights {
  return {
    quantizers: Array.from({ length: c.codebooks.count }, (_, i) => quantizer(w, c, `quantizer.quantizers.${i}`)),
    decoder: decoder(w, c),
    encoder: encoder(w, c),
  }
}

function quantizer(w: Weights, { codebooks: { size, width }, latent }: DacConfig, at: string): Quantizer {
  return {
    in: conv(w, `${at}.in_proj`, latent, width, 1, 'f32'),
    codebook: w.vector(`${at}.codebook.weight`, [size, width]),
    out: w.vector(`${at}.out_proj.weight`, [latent, width, 1]),
    bias: w.vector(`${at}.out_proj.bias`, [latent]),
  }
}

function decoder(w: Weights, { latent, decoder: { channels, strides } }: DacConfig): DecoderWeights {
  const last = channels / 2 ** strides.length
  return {
    conv1: conv(w, 'decoder.conv1', latent, channels, 7),
    blocks: strides.map((stride, b) => {
      const at = `decoder.block.${b}`
      const C = channels / 2 ** b
      return {
        snake1: snake(w, `${at}.snake1`, C),
        convT1: convTransposed(w, `${at}.conv_t1`, C, C / 2, stride),
        units: units(w, at, C / 2),
      }
    }),
    snake1: snake(w, 'decoder.snake1', last),
    conv2: conv(w, 'decoder.conv2', last, 1, 7),
  }
}

function encoder(w: Weights, { latent, encoder: { channels, strides } }: DacConfig): EncoderWeights {
  return {
    conv1: conv(w, 'encoder.conv1', 1, channels, 7, 'f32'),
    blocks: strides.map((stride, b) => {
      const at = `encoder.block.${b}`
      const C = channels * 2 ** b
      return {
        units: units(w, at, C, 'f32'),
        snake1: snake(w, `${at}.snake1`, C),
        conv1: conv(w, `${at}.conv1`, C, 2 * C, 2 * stride, 'f32'),
      }
    }),
    snake1: snake(w, 'encoder.snake1', latent),
    conv2: conv(w, 'encoder.conv2', latent, latent, 3, 'f32'),
  }
}

const units = (w: Weights, block: string, C: number, format?: Format): ResidualUnit[] =>
  dilations.map((_, i) => {
    const at = `${block}.res_unit${i + 1}`
    return {
      snake1: snake(w, `${at}.snake1`, C),
      conv1: conv(w, `${at}.conv1`, C, C, 7, format),
      snake2: snake(w, `${at}.snake2`, C),
      conv2: conv(w, `${at}.conv2`, C, C, 1, format),
    }
  })

const snake = (w: Weights, at: string, C: number): Tensor => w.vector(`${at}.alpha`, [1, C, 1])

/** From [out, in, tap] to rows of out that hold in for tap after tap, filled up with zeros. */
function conv(w: Weights, at: string, C: number, O: number, taps: number, format?: Format): ConvWeights {
  const IN = Math.ceil((taps * C) / 8) * 8
  const from = (i: number): number => {
    const [o, k] = [Math.floor(i / IN), i % IN]
    return k < taps * C ? (o * C + (k % C)) * taps + Math.floor(k / C) : -1
  }
  return {
    w: w.arranged(`${at}.weight`, [O, C, taps], [O, IN], from, format),
    bias: w.vector(`${at}.bias`, [O]),
    taps,
  }
}

/** From [in, out, tap] to rows (p, out) that hold in for tap p + stride, which meets the earlier row, then for tap p. */
function convTransposed(w: Weights, at: string, C: number, O: number, stride: number): ConvWeights {
  const IN = Math.ceil((2 * C) / 8) * 8
  const from = (i: number): number => {
    const [row, k] = [Math.floor(i / IN), i % IN]
    const tap = Math.floor(row / O) + (k < C ? stride : 0)
    return k < 2 * C ? ((k % C) * O + (row % O)) * 2 * stride + tap : -1
  }
  return {
    w: w.arranged(`${at}.weight`, [C, O, 2 * stride], [stride * O, IN], from),
    bias: w.vector(`${at}.bias`, [O]),
    taps: 2 * stride,
  }
}
