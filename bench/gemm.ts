import type { Device, Profile } from '../src/device/device.ts'
import { encode } from '../src/device/formats.ts'
import { Graph } from '../src/graph/graph.ts'
import type { Counts, Format, Tensor } from '../src/graph/tensor.ts'
import { hash } from '../src/kernels/fill_random.ts'
import { type Rounds, summary } from './measure.ts'
import { sumMs } from './profile.ts'
import { around, fill } from './random_model.ts'

/** More than the caches of any GPU: weights are read from memory, as in a model. */
const STREAMED_BYTES = 256 * 2 ** 20
const MOST_COPIES = 24

/** y [M, N] = x [M, K] wᵀ. */
export interface Gemm {
  readonly name: string
  readonly M: number
  readonly N: number
  readonly K: number
}

/** Copies of a weight [N, K] that do not fit in a cache together. */
export async function streamedWeights(device: Device, { N, K }: Pick<Gemm, 'N' | 'K'>): Promise<readonly Tensor[]> {
  const format = device.target.operand === 'f16' ? 'f16' : 'bf16'
  const most = device.report.software ? 1 : MOST_COPIES
  const copies = Array.from({ length: Math.min(most, Math.ceil(STREAMED_BYTES / (2 * N * K))) }, (_, i) =>
    device.keep(`w ${i}`, [N, K], format),
  )
  for (const [i, w] of copies.entries()) await fill(device, w, around(0, Math.sqrt(3 / K)), i)
  return copies
}

/** Times the product over each of the copies; `record` records it and nothing else. */
export async function timeGemm(
  device: Device,
  { name, M, N, K }: Gemm,
  weights: readonly Tensor[],
  rounds: Rounds,
  record: (x: Tensor, w: Tensor) => unknown,
) {
  const graph = new Graph(device.target)
  const x = graph.input('x', ['T', K], device.target.operand)
  for (const w of weights) record(x, w)
  const counts = { T: M, S: 1, C: 1, R: 1 }
  const inputs = { x: randomBytes(M * K, x.format) } // the same bits everywhere would draw less power
  const profiles = await profileGraph(device, graph, inputs, counts, rounds)
  const ms = profiles.flatMap(({ dispatches }) => {
    const each = dispatches.length / weights.length
    return weights.map((_, i) => sumMs(dispatches.slice(i * each, (i + 1) * each)))
  })
  const timing = summary(ms)
  return {
    case: `${name}, ${M} x ${N} x ${K}`,
    kernels: [...new Set(profiles[0]!.dispatches.map(({ kernel }) => kernel))].join(' + '),
    ...timing,
    tflopsPerSecond: (2 * M * N * K) / timing.medianMs / 1e9,
  }
}

/** Values in [-1, 1) that repeat after a while. */
function randomBytes(count: number, format: Format): Uint8Array {
  const distinct = Math.min(count, 2 ** 16)
  const block = encode(
    Float32Array.from({ length: distinct }, (_, i) => hash(i) / 2 ** 31 - 1),
    format,
  )
  const all = new Uint8Array((block.length / distinct) * count)
  for (let at = 0; at < all.length; at += block.length) all.set(block.subarray(0, all.length - at), at)
  return all
}

/** Runs a graph that nobody reads, for the times of its dispatches. */
export async function profileGraph(
  device: Device,
  graph: Graph,
  inputs: Readonly<Record<string, Uint8Array | Uint32Array>>,
  counts: Counts,
  { warmups, runs }: Rounds,
): Promise<Profile[]> {
  const program = await device.compile(graph)
  const profiles: Profile[] = []
  const run = () => program.run(inputs, counts, { onProfile: (p) => profiles.push(p) })
  await run()
  await Promise.all(Array.from({ length: warmups + runs - 1 }, run)) // a GPU that waits in between lowers its clock
  program.dispose()
  return profiles.slice(warmups)
}
