import { afterAll, expect } from 'vitest'
import { create, globals } from 'webgpu'
import { cpuTarget } from '../../src/device/cpu.ts'
import { pipelines } from '../../src/device/webgpu/pipelines.ts'
import type { Graph } from '../../src/graph/graph.ts'
import { defaultLimits, type Target } from '../../src/graph/target.ts'
import type { DeltaDims } from '../../src/kernels/delta_prepare.ts'
import { hasUnits, withUnits } from './matrix_units.ts'
import { emulated } from './tile_units.ts'

/** For the first test that needs delta_chunk_matrix: a software driver compiles it for a minute, two where it is busy. */
export const COLD_MS = 400_000

const limits = { ...defaultLimits, workgroupBytes: 48 * 1024, invocations: 1024 }
/** A GPU with matrix units of 16 x 16 x 16, as NVIDIA's. */
export const nvidia: Target = {
  ...withUnits({ ...cpuTarget, kind: 'webgpu', software: false, limits }, 16),
  operand: 'f16',
}

/** Records on the matrix units of a graph's device, or in the emulation of them where it has none. */
export function onUnits<T>(graph: Graph, record: () => T): T {
  const real = hasUnits(graph.target)
  const target = real ? graph.target : { ...withUnits(graph.target, 16), limits }
  Object.assign(graph, { target: { ...target, operand: 'f16' } satisfies Target })
  const before = graph.steps.length
  const made = record()
  if (real) return made
  graph.steps.push(...graph.steps.splice(before).map((step) => ({ ...step, kernel: emulated(step.kernel) })))
  return made
}

/** Head widths of decider-nano, of the smallest allowed, uneven ones, and of 0.8B and 2B. */
export const compiled: readonly DeltaDims[] = [
  { keyHeads: 2, valueHeads: 4, keyWidth: 16, valueWidth: 16 },
  { keyHeads: 2, valueHeads: 4, keyWidth: 32, valueWidth: 32 },
  { keyHeads: 1, valueHeads: 3, keyWidth: 48, valueWidth: 112 },
  { keyHeads: 16, valueHeads: 16, keyWidth: 128, valueWidth: 128 },
]

const dawn = create(['backend=null', 'enable-dawn-features=allow_unsafe_apis']) // held: Dawn dies with it
let device: GPUDevice | undefined
afterAll(() => device?.destroy())

/** The graph's shaders compile under Tint. Dawn's null backend counts workgroup memory and invocations last: its are few. */
export async function expectCompiles(graph: Graph): Promise<void> {
  Object.assign(globalThis, globals)
  const adapter = await dawn.requestAdapter()
  device ??= await adapter!.requestDevice({ requiredFeatures: [...adapter!.features] as GPUFeatureName[] })
  expect(graph.steps.length).toBeGreaterThan(0)
  const shaders = pipelines(device)
  for (const made of await Promise.allSettled(graph.steps.map((step) => shaders.of(step))))
    if (made.status === 'rejected')
      expect((made.reason as Error).message).toMatch(
        /workgroup(_size\(.*\) that exceeds| storage .* is larger than) the maximum/,
      )
}
