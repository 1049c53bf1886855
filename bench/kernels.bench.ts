import { readFileSync } from 'node:fs'
import type { Device, Profile } from '../src/device/device.ts'
import { Graph } from '../src/graph/graph.ts'
import { embedding } from '../src/kernels/embedding.ts'
import { hash } from '../src/kernels/fill_random.ts'
import { randomOperands } from '../src/kernels/tune/operands.ts'
import { pickedPlan, recordProduct } from '../src/kernels/tune/product.ts'
import { products, visionProducts } from '../src/models/qwen3_5/products.ts'
import { textSession } from '../src/models/qwen3_5/session.ts'
import type { Bench, BenchOptions } from './bench.ts'
import { type Gemm, profileGraph, timeGemm } from './gemm.ts'
import { median, origin, type Row } from './measure.ts'
import { byKernel, classOf, type Peaks, typical } from './profile.ts'
import { randomModel } from './random_model.ts'
import { type ShapeName, shape, visionShape } from './shapes.ts'
import { sweepLinear } from './sweep.ts'

/** What torch_baseline.py writes. */
interface Baseline {
  readonly gemms: readonly { readonly M: number; readonly N: number; readonly K: number; readonly ms: number }[]
}

const LENGTHS = [256, 1024, 4096]

/** Matrix products in TFLOP/s, and the other kernels as shares of what the machine's memory and arithmetic allow. */
export const kernels: Bench = async (device, options, note) => {
  const { shapes, limit, heights, sweep, peakTflops, baseline, warmups, runs } = options
  const cube: Gemm = { name: 'cube', M: 4096, N: 4096, K: 4096, use: 'store' }
  const gemms = [
    ...shapes.flatMap((model) =>
      [...products(shape(model)), ...visionProducts(visionShape(model))].flatMap(({ name, N, K, use }) =>
        heights.map((M) => ({ name: `${model} ${name}`, M, N, K, use })),
      ),
    ),
    ...(shapes.includes('tiny') ? [] : [cube]),
  ].filter(({ M }) => M <= limit)
  const result = (rows: readonly Row[]) => {
    return { bench: 'kernels', ...origin(device), checkpoint: 'random weights', warmups, runs, peakTflops, rows }
  }
  if (sweep === 'linear') return result(await sweepLinear(device, gemms, options, note))
  if (sweep) throw new Error(`--sweep: has ${sweep}, expected linear`)

  const cublas = baseline ? (JSON.parse(readFileSync(baseline, 'utf8')) as Baseline).gemms : []
  const bytesPerMs = await copySpeed(device, options)
  const rows: Row[] = [{ case: 'copy', gigabytesPerSecond: bytesPerMs / 1e6 }]
  note(`copy: ${(bytesPerMs / 1e9).toFixed(3)} TB/s`)
  for (const gemm of gemms) {
    const operands = await randomOperands(device, gemm, gemm.M)
    const row = await timeGemm(device, gemm, operands, options, (x, w) =>
      recordProduct(x.graph!, gemm, x, w, pickedPlan(x.graph!, gemm, x, w)),
    )
    const theirs = cublas.find(({ M, N, K }) => M === gemm.M && N === gemm.N && K === gemm.K)
    operands.release()
    rows.push({ ...row, ...(theirs && { ofCublas: theirs.ms / row.medianMs }) })
    note(`${row.case}: ${row.tflopsPerSecond.toFixed(1)} TFLOP/s`)
  }
  const peaks = { bytesPerMs, flopsPerMs: peakTflops && peakTflops * 1e9 }
  for (const model of shapes) rows.push(...(await others(device, model, options, peaks)))
  return result(rows)
}

/** Bytes per millisecond of a copy: every row of a table read and written once. */
async function copySpeed(device: Device, { limit, warmups, runs }: BenchOptions): Promise<number> {
  const rows = Math.min(8192, limit)
  const width = device.report.software ? 256 : 8192
  const table = device.keep('table', [rows, width], 'f32')
  const graph = new Graph(device.target)
  embedding(graph.input('ids', ['T'], 'u32'), table)
  const ids = Uint32Array.from({ length: rows }, (_, i) => i)
  const profiles = await profileGraph(device, graph, { ids }, { T: rows, S: 1, C: 1, R: 1 }, { warmups, runs })
  device.release(table)
  return profiles[0]!.dispatches[0]!.bytes / median(profiles.map(({ dispatches }) => dispatches[0]!.ms))
}

/** Every kernel but the products as the model runs it, with its weights and pools out of the caches. */
async function others(
  device: Device,
  model: ShapeName,
  { limit, warmups, runs }: BenchOptions,
  peaks: Peaks,
): Promise<Row[]> {
  const { c, w, head, release } = await randomModel(device, shape(model))
  const session = textSession(device, c, w, head)
  const rows: Row[] = []
  for (const tokens of LENGTHS.filter((T) => T <= limit)) {
    const ids = Array.from({ length: tokens }, (_, i) => hash(i) % c.vocabulary)
    const profiles: Profile[] = []
    for (let i = 0; i < warmups + runs; i++)
      await session.logits([{ ids, slots: [tokens - 1] }], { onProfile: (p) => profiles.push(p) })
    const { dispatches, ...rest } = typical(profiles.slice(warmups))
    const kernels = byKernel({ ...rest, dispatches: dispatches.filter((d) => classOf(d.kernel) !== 'gemm') }, peaks)
    for (const row of kernels) rows.push({ case: `${model}, ${tokens} tokens`, ...row })
  }
  session.dispose()
  release()
  return rows
}
