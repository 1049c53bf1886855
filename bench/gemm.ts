import type { Device, Profile } from '../src/device/device.ts'
import { Graph } from '../src/graph/graph.ts'
import type { Counts, Tensor } from '../src/graph/tensor.ts'
import type { Operands } from '../src/kernels/tune/operands.ts'
import type { MatrixProduct } from '../src/kernels/tune/product.ts'
import { type Rounds, summary } from './measure.ts'
import { sumMs } from './profile.ts'

/** y [M, N] = x [M, K] wᵀ. */
export interface Gemm extends MatrixProduct {
  readonly M: number
}

/** Times the product over each copy of the weights; `record` records it and nothing else. */
export async function timeGemm(
  device: Device,
  { name, M, N, K }: Gemm,
  { weights, x: recordX }: Operands,
  rounds: Rounds,
  record: (x: Tensor, w: Tensor) => unknown,
) {
  const graph = new Graph(device.target)
  const x = recordX(graph, graph.input('ids', ['T'], 'u32'))
  const before = graph.steps.length
  for (const w of weights) record(x, w)
  const counts = { T: M, S: 1, C: 1, R: 1 }
  const ids = Uint32Array.from({ length: M }, (_, i) => i)
  const profiles = await profileGraph(device, graph, { ids }, counts, rounds)
  const ms = profiles.flatMap(({ dispatches }) => {
    const each = (dispatches.length - before) / weights.length
    return weights.map((_, i) => sumMs(dispatches.slice(before + i * each, before + (i + 1) * each)))
  })
  const timing = summary(ms)
  return {
    case: `${name}, ${M} x ${N} x ${K}`,
    kernels: [...new Set(profiles[0]!.dispatches.slice(before).map(({ kernel }) => kernel))].join(' + '),
    ...timing,
    tflopsPerSecond: (2 * M * N * K) / timing.medianMs / 1e9,
  }
}

/** The clock of an idle GPU is down, and what was done before a graph is timed was a pause. */
const WARM_MS = 30

/** Runs a graph that nobody reads, for the times of its dispatches. */
export async function profileGraph(
  device: Device,
  graph: Graph,
  inputs: Readonly<Record<string, Uint8Array | Uint32Array>>,
  counts: Counts,
  { warmups, runs }: Rounds,
): Promise<Profile[]> {
  const program = await device.compile(graph)
  const start = performance.now()
  for (let i = 0; i < warmups || performance.now() - start < WARM_MS; i += 2) {
    await Promise.all([program.run(inputs, counts), program.run(inputs, counts)])
    await device.flush()
  }
  const profiles: Profile[] = []
  for (let i = 0; i < runs; i++) await program.run(inputs, counts, { onProfile: (p) => profiles.push(p) })
  program.dispose()
  return profiles
}
