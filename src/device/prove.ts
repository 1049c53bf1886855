import { DeviceError } from '../errors.ts'
import { Graph } from '../graph/graph.ts'
import type { Target } from '../graph/target.ts'
import { type Counts, elements, type Format, type Shape, type Tensor } from '../graph/tensor.ts'
import { cpuDevice } from './cpu.ts'
import type { Device, Inputs } from './device.ts'
import { encode } from './formats.ts'
import type { Verdicts } from './verdicts.ts'

/** A small problem that an optional variant has to solve as its CPU twin does, before anybody relies on it. */
export interface Probe {
  /** The kernel's name. */
  readonly variant: string
  readonly counts: Counts
  /** Largest |device - twin| / (1 + |twin|): what its number formats allow. */
  readonly tolerance: number
  fits(target: Target): boolean
  /**
   * Records the op with the variant forced, its outputs named. Inputs left out are noise; `pool` makes a pool of zeros
   * for it.
   */
  record(graph: Graph, pool: MakePool): Inputs
}

export type MakePool = (shape: Shape, format: Format, rows: number) => Tensor

const proven = new WeakMap<Device, Promise<void>>()

/**
 * Tries every variant that fits the device, once: one that fails is switched off, with the reason, and ops do without
 * it. Verdicts are remembered; a variant under trial when the process died counts as failed.
 */
export function prove(device: Device, probes: readonly Probe[], verdicts: Verdicts): Promise<void> {
  const known = proven.get(device)
  if (known) return known
  const trial = (async () => {
    for (const probe of probes) {
      if (device.target.disabled.has(probe.variant) || !probe.fits(device.target)) continue
      const reason = await verdicts.once(`${device.report.adapter}: ${probe.variant}`, () => failure(device, probe))
      if (reason) device.disable(probe.variant, reason)
    }
  })()
  proven.set(device, trial)
  trial.catch(() => proven.delete(device))
  return trial
}

/** Why the variant cannot be used; undefined where it can. */
async function failure(device: Device, { record, counts, tolerance }: Probe): Promise<string | undefined> {
  try {
    const got = await solve(device, record, counts, device.target)
    const want = await solve(cpuDevice('probe'), record, counts, device.target)
    for (const name of Object.keys(want)) {
      const error = worst(got[name]!, want[name]!)
      if (!(error <= tolerance)) return `its probe is off by ${error.toPrecision(2)} in ${name}, at most ${tolerance}`
    }
    return undefined
  } catch (error) {
    if (error instanceof DeviceError && ['shader', 'validation', 'limit', 'lost'].includes(error.code))
      return error.message
    throw error
  }
}

async function solve(device: Device, record: Probe['record'], counts: Counts, target: Target) {
  const graph = new Graph(target)
  const pools: Tensor[] = []
  const given = record(graph, (shape, format, rows) => {
    const t = device.keep('probe', shape, format, rows)
    pools.push(t)
    return t
  })
  const noise = [...graph.inputs].map(([name, t], i) => [name, encode(values(elements(t, counts), i + 1), t.format)])
  const program = await device.compile(graph)
  try {
    return await program.run({ ...Object.fromEntries(noise), ...given }, counts)
  } finally {
    program.dispose()
    pools.forEach(device.release)
  }
}

/** Repeatable values in [-1, 1) that every format holds exactly. */
function values(n: number, seed: number): Float32Array {
  let s = seed
  return Float32Array.from({ length: n }, () => {
    s = (Math.imul(s, 1664525) + 1013904223) >>> 0
    return (s >>> 25) / 64 - 1
  })
}

/** The largest difference over the value and the usual size of its kind: of large terms a small sum may be left. */
function worst(got: Float32Array, want: Float32Array): number {
  const usual = Math.sqrt(want.reduce((sum, w) => sum + w * w, 0) / want.length)
  let most = got.length === want.length && want.length > 0 ? 0 : Number.POSITIVE_INFINITY
  want.forEach((w, i) => {
    const error = Math.abs(got[i]! - w) / (1 + usual + Math.abs(w))
    most = Math.max(most, Number.isNaN(error) ? Number.POSITIVE_INFINITY : error)
  })
  return most
}
