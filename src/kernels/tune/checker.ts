import type { Device } from '../../device/device.ts'
import { Graph } from '../../graph/graph.ts'
import type { LinearPlan } from '../../graph/target.ts'
import { gatherRows } from '../gather_rows.ts'
import { plainPlan } from '../linear.ts'
import type { Operands } from './operands.ts'
import { type MatrixProduct, recordProduct } from './product.ts'

/** Of |y - plain| / (1 + |plain|): what runs of f16 products cost, as in linearProbes. */
const TOLERANCE = 2e-2

/**
 * Tells why the numbers of a plan are wrong; undefined where they are right. Every fifth row of the first ones and the
 * last are compared with the plain kernel's, in all columns.
 */
export async function checker(
  device: Device,
  product: MatrixProduct,
  operands: Operands,
  { rows, signal }: { readonly rows: number; readonly signal?: AbortSignal | undefined },
): Promise<(plan: LinearPlan) => Promise<string | undefined>> {
  const read = Uint32Array.from([...Array(rows).keys()].filter((row) => row % 5 === 0 || row === rows - 1))
  const ids = Uint32Array.from({ length: rows }, (_, i) => i)
  const width = product.use === 'swiglu' ? product.N / 2 : product.N

  async function solve(plan: LinearPlan): Promise<Float32Array> {
    const graph = new Graph(device.target)
    const x = operands.x(graph, graph.input('ids', ['T'], 'u32'))
    const y = recordProduct(graph, product, x, operands.weights[0]!, plan)
    graph.output('y', gatherRows(y, graph.input('read', ['R'], 'u32')))
    const program = await device.compile(graph)
    try {
      const { y } = await program.run({ ids, read }, { T: rows, S: 1, C: 1, R: read.length }, { signal })
      return sumParts(y!, read.length, width)
    } finally {
      program.dispose()
    }
  }

  const want = await solve(plainPlan)
  return async (plan) => {
    const got = await solve(plan)
    let worst = got.length === want.length ? 0 : Number.POSITIVE_INFINITY
    want.forEach((w, i) => {
      const error = Math.abs(got[i]! - w) / (1 + Math.abs(w))
      worst = Math.max(worst, Number.isNaN(error) ? Number.POSITIVE_INFINITY : error)
    })
    return worst <= TOLERANCE ? undefined : `its numbers are off by ${worst.toPrecision(2)}, at most ${TOLERANCE}`
  }
}

/** Parts [rows, n * width] as the sums [rows, width] that an add_rms_norm makes of them. */
function sumParts(parts: Float32Array, rows: number, width: number): Float32Array {
  const wide = parts.length / rows
  const sums = new Float32Array(rows * width)
  parts.forEach((part, at) => {
    sums[Math.floor(at / wide) * width + ((at % wide) % width)]! += part
  })
  return sums
}
