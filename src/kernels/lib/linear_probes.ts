import type { Inputs } from '../../device/device.ts'
import type { Probe } from '../../device/prove.ts'
import { Graph } from '../../graph/graph.ts'
import type { LinearRule } from '../../graph/target.ts'
import type { Tensor } from '../../graph/tensor.ts'
import { conv1d } from '../conv1d.ts'
import { linear, linearMisfit, linearParts, recordLinear } from '../linear.ts'
import { addRmsNorm } from '../rms_norm.ts'
import { linearTable, slicesIn } from './linear_tiles.ts'

/**
 * Few rows, hundreds and thousands, so that every tile of a plan runs, with rows and columns left over; then a readout,
 * SwiGLU in f16 and as when decoding, GELU, a sum in parts, one whose parts a workgroup may add itself, and a
 * convolution.
 */
const record = (graph: Graph): Inputs => {
  const format = graph.target.operand
  const w = graph.input('w', [200, 128], format)
  const down = graph.input('down', [40, 160], format)
  for (const rows of [17, 75, 600])
    graph.output(`rows ${rows}`, linear(graph.input(`x ${rows}`, [rows, 128], format), w))
  const x = graph.input('x', ['T', 128], format)
  graph.output('parts', linearParts(x, w, { split: 2 }).sums)
  const wide = [graph.input('wide x', ['T', 512], format), graph.input('wide w', [200, 512], format)] as const
  const stream = graph.input('stream', ['T', 200])
  const adding = { eps: 1e-5, summing: 'alone' } as const // nothing else that is on trial
  const plan = slicedPlan(...wide)
  const sliced = plan ? recordLinear(...wide, plan) : linearParts(...wide)
  graph.output('slices', addRmsNorm(stream, sliced, graph.input('stream norm', [200]), adding).x)
  const gated = linear(x, graph.input('gate up', [320, 128], format), { finish: 'swiglu', format })
  graph.output('read', linear(graph.input('read x', ['R', 128], format), w))
  const few = linear(x, graph.input('up gate', [80, 128], format), { finish: 'swiglu_up_first', rows: 'few' })
  const norm = { w: graph.input('norm', [2, 40]), eps: 1e-5 }
  graph.output('few', linear(few, graph.input('few w', [50, 40], format), { norm, rows: 'few' }))
  graph.output('swiglu', linear(gated, down, { add: graph.input('residual', ['T', 40]) }))
  const bias = graph.input('gelu bias', [320])
  const activated = linear(x, graph.input('up', [320, 128], format), { bias, finish: 'gelu_tanh', format })
  graph.output('gelu', linear(activated, graph.input('out', [40, 320], format)))
  const conv = { w: graph.input('taps', [48, 7 * 32], format), bias: graph.input('bias', [48]), taps: 7 }
  graph.output('windows', conv1d(graph.input('signal', ['T', 2, 32], format), conv, { dilation: 3 }).value)
  return {}
}

/** Shapes of models pick it, which are large. */
const slicedPlan = (x: Tensor, w: Tensor): LinearRule | undefined =>
  linearTable.find(
    (rule) => rule.heights.some(({ tile }) => slicesIn(tile) > 1) && linearMisfit(x, w, rule) === undefined,
  )

/**
 * Probes of the optional variants of `linear`, as the target picks them. Operands are multiples of 1/64, of which f32
 * sums are exact; f16 loses 2^-11 of y in SwiGLU.
 */
export const linearProbes: readonly Probe[] = (
  ['linear_matrix', 'linear_tiled', 'linear_dot', 'linear_few'] as const
).map((variant) => ({
  variant,
  counts: { T: 75, S: 1, C: 1, R: 6 },
  tolerance: 2e-2,
  fits(target) {
    const graph = new Graph(target)
    record(graph)
    return graph.steps.some((step) => step.kernel.name === variant)
  },
  record,
}))
