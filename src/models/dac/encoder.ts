import { Graph } from '../../graph/graph.ts'
import type { Target } from '../../graph/target.ts'
import type { Tensor } from '../../graph/tensor.ts'
import { conv1d } from '../../kernels/conv1d.ts'
import { dequantize } from '../../kernels/dequantize.ts'
import { nearestCode } from '../../kernels/nearest_code.ts'
import type { DacConfig } from './config.ts'
import { both, residualUnits, type Stream } from './decoder.ts'
import type { DacWeights, EncoderWeights, Quantizer } from './weights.ts'

/** From samples, the input `wave` ['T', hop, 1], to codes ['T'] of every codebook, `codes.0` and on. T frames, f32. */
export function encoderGraph(target: Target, c: DacConfig, w: DacWeights): Graph {
  const graph = new Graph(target)
  const latent = graph.name(encoder(graph, w.encoder, graph.input('wave', ['T', c.hop, 1])), 'latent')
  quantize(graph, w.quantizers, latent).forEach((codes, i) => {
    graph.output(`codes.${i}`, codes)
  })
  return graph
}

/** conv2(snake1(blocks(conv1(wave)))), a block being residual units and snake1, then a convolution that strides. */
function encoder(graph: Graph, w: EncoderWeights, wave: Tensor): Tensor {
  const snakes = [...w.blocks.map(({ units }) => units[0]!.snake1), w.snake1]
  let stream: Stream = conv1d(wave, w.conv1, { ...both, snake: snakes[0]! })
  w.blocks.forEach(({ units, snake1, conv1 }, b) => {
    const snaked = residualUnits(graph, units, stream, snake1, { format: 'f32', missing: 0, at: `block.${b}` })
    stream = conv1d(snaked, conv1, { ...both, snake: snakes[b + 1]!, stride: conv1.taps / 2 })
  })
  return conv1d(stream.snaked, w.conv2).value
}

/** Codebook after codebook takes its vector from what is left: r −= out(codebook[code]), code nearest to in(r). */
function quantize(graph: Graph, quantizers: readonly Quantizer[], latent: Tensor): Tensor[] {
  let rest = latent
  return quantizers.map((q, i) => {
    const codes = graph.name(nearestCode(conv1d(rest, q.in).value, q.codebook), `codes.${i}`)
    if (i + 1 < quantizers.length) rest = dequantize(codes, q, { from: rest })
    return codes
  })
}
