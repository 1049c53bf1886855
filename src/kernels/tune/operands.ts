import type { Device } from '../../device/device.ts'
import { Graph } from '../../graph/graph.ts'
import type { Shape, Tensor } from '../../graph/tensor.ts'
import { embedding } from '../embedding.ts'
import { fillRandom } from '../fill_random.ts'
import { rmsNorm } from '../rms_norm.ts'
import type { MatrixProduct } from './product.ts'

/** Kept on the device, filled there, and let go of together. */
export interface Operands {
  /** Copies of w that do not fit in a cache together: weights are read from memory, as in a model. */
  readonly weights: readonly Tensor[] // [N, K] each
  /** Records x ['T', K] of the device's operand format, row i from index i. */
  x(graph: Graph, ids: Tensor): Tensor
  release(): void
}

/** More than the caches of any GPU. */
const STREAMED_BYTES = 256 * 2 ** 20
const MOST_COPIES = 24

/** Random operands of a product for up to `rows` rows: x of variance 1, and w that keeps it. */
export async function randomOperands(device: Device, { N, K }: MatrixProduct, rows: number): Promise<Operands> {
  const { operand } = device.target
  const most = device.report.software ? 1 : MOST_COPIES
  const kept: Tensor[] = []
  const keep = (label: string, shape: Shape, format: Tensor['format']): Tensor => {
    const t = device.keep(label, shape, format)
    kept.push(t)
    return t
  }
  const release = (): void => kept.forEach((t) => void device.release(t))
  const weights = Array.from({ length: Math.min(most, Math.ceil(STREAMED_BYTES / (2 * N * K))) }, (_, i) =>
    keep(`w ${i}`, [N, K], operand === 'f16' ? 'f16' : 'bf16'),
  )
  const table = keep('x', [rows, K], 'f32')
  const norm = keep('norm', [K], 'f32')
  try {
    await fillAll(device, [
      ...weights.map((w) => ({ t: w, high: Math.sqrt(3 / K) })),
      { t: table, high: 1 },
      { t: norm, high: 0.1 },
    ])
  } catch (error) {
    release()
    throw error
  }
  const x: Operands['x'] = (_, ids) => rmsNorm(embedding(ids, table), norm, { eps: 1e-6, offset: 1, format: operand })
  return { weights, x, release }
}

/** Fills kept tensors with values in [-high, high), each with others, in one run. */
export async function fillAll(device: Device, fills: readonly { t: Tensor; high: number }[]): Promise<void> {
  const graph = new Graph(device.target)
  fills.forEach(({ t, high }, i) => fillRandom(t, graph.input(`seed ${i}`, [1], 'u32'), { low: -high, high }))
  const program = await device.compile(graph)
  const seeds = fills.map((_, i) => [`seed ${i}`, Uint32Array.of(i + 1)])
  try {
    await program.run(Object.fromEntries(seeds), { T: 1, S: 1, C: 1, R: 1 })
  } finally {
    program.dispose()
  }
}
