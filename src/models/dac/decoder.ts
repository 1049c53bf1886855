import { Graph } from '../../graph/graph.ts'
import type { Target } from '../../graph/target.ts'
import type { Tensor } from '../../graph/tensor.ts'
import { conv1d, convTranspose1d, type Given, transposedMissing } from '../../kernels/conv1d.ts'
import { dequantize } from '../../kernels/dequantize.ts'
import { type DacWeights, dilations, type Quantizer, type ResidualUnit } from './weights.ts'

/** From codes ['T'] of every codebook, inputs `codes.0` and on, to `wave` ['T', hop, 1]. T frames. */
export function decoderGraph(target: Target, w: DacWeights): Graph {
  const graph = new Graph(target)
  const codes = w.quantizers.map((_, i) => graph.input(`codes.${i}`, ['T'], 'u32'))
  graph.output('wave', decoder(graph, w, codes))
  return graph
}

/** A signal on its way: its value, and the value through the snake that comes next, as the next convolution reads it. */
export interface Stream {
  readonly value: Tensor
  readonly snaked: Tensor
}

/** For convolutions whose value is added to later. */
export const both: { readonly gives: readonly Given[] } = { gives: ['value', 'snaked'] }

/** z = Σ_i out_i(codebook_i[code_i]);  tanh(conv2(snake1(blocks(conv1(z))))), a block being snake1, conv_t1 and units. */
function decoder(graph: Graph, { quantizers, decoder: w }: DacWeights, codes: readonly Tensor[]): Tensor {
  const format = graph.target.operand
  const z = graph.name(latent(quantizers, codes, format), 'latent')
  const snakes = [...w.blocks.map((block) => block.snake1), w.snake1]
  let missing = 0
  let { snaked } = conv1d(z, w.conv1, { gives: ['snaked'], snake: snakes[0]!, format })
  w.blocks.forEach(({ convT1, units }, b) => {
    const at = `block.${b}`
    graph.name(snaked, `${at}.snake1`)
    const stream = convTranspose1d(snaked, convT1, { ...both, snake: units[0]!.snake1, format, missing })
    graph.name(stream.value, `${at}.conv_t1`)
    missing = transposedMissing(missing, convT1.taps / 2)
    snaked = residualUnits(graph, units, stream, snakes[b + 1]!, { format, missing, at })
  })
  graph.name(snaked, 'snake1')
  return conv1d(snaked, w.conv2, { tanh: true, missing }).value
}

export interface UnitOptions {
  readonly format: Target['operand']
  /** Rows that the signal lacks at its end. */
  readonly missing: number
  /** For names. */
  readonly at: string
}

/** x += conv2(snake2(conv1(snake1(x)))) for each dilation; the sum, through the snake that follows. */
export function residualUnits(
  graph: Graph,
  units: readonly ResidualUnit[],
  stream: Stream,
  next: Tensor,
  { format, missing, at }: UnitOptions,
): Tensor {
  const snakes = [...units.map((unit) => unit.snake1), next]
  let { value, snaked } = stream
  units.forEach(({ conv1, snake2, conv2 }, i) => {
    const dilated = { dilation: dilations[i]!, snake: snake2, format, missing }
    const inner = conv1d(snaked, conv1, { gives: ['snaked'], ...dilated }).snaked
    const finish = { add: value, snake: snakes[i + 1]!, format, missing }
    if (i + 1 === units.length) {
      snaked = conv1d(inner, conv2, { gives: ['snaked'], ...finish }).snaked
      return
    }
    ;({ value, snaked } = conv1d(inner, conv2, { ...both, ...finish }))
    graph.name(value, `${at}.res_unit${i + 1}`)
  })
  return snaked
}

/** The sum of what every codebook has for its code. */
function latent(quantizers: readonly Quantizer[], codes: readonly Tensor[], format: Target['operand']): Tensor {
  let z: Tensor | undefined
  quantizers.forEach((q, i) => {
    const last = i + 1 === quantizers.length
    z = dequantize(codes[i]!, q, { ...(z && { add: z }), format: last ? format : 'f32' })
  })
  return z!
}
