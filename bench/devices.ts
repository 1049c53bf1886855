import type { Device, Profile, Program, RunOptions } from '../src/device/device.ts'
import type { Graph, Step } from '../src/graph/graph.ts'
import type { Target } from '../src/graph/target.ts'
import type { Counts } from '../src/graph/tensor.ts'

/** The same device with a target of its own, from which a variant that fails is dropped as from any. */
export function withTarget(device: Device, first: Target): Device {
  let target = first
  const disable: Device['disable'] = (variant, reason) => {
    target = { ...target, disabled: new Map([...target.disabled, [variant, reason]]) }
  }
  return Object.create(device, { target: { get: () => target }, disable: { value: disable } })
}

/** The device as if it lacked features and variants. Without shader-f16 operands and cache are f32. */
export function without(device: Device, features: readonly string[], variants: readonly string[]): Device {
  if (features.length + variants.length === 0) return device
  const { matrix, ...target } = device.target
  const left = new Set([...target.features].filter((name) => !features.includes(name)))
  return withTarget(device, {
    ...target,
    ...(matrix && left.has('chromium-experimental-subgroup-matrix') && { matrix }),
    features: left,
    disabled: new Map([...target.disabled, ...variants.map((name) => [name, 'the bench goes without'] as const)]),
    ...(!left.has('shader-f16') && { operand: 'f32', cache: 'f32' }),
  })
}

/** Sees every run on the device before it begins. */
function beforeRuns(device: Device, see: (graph: Graph, counts: Counts, options: RunOptions) => RunOptions): Device {
  const compile: Device['compile'] = async (graph) => {
    const program = await device.compile(graph)
    const run: Program['run'] = (inputs, counts, options = {}) =>
      program.run(inputs, counts, see(graph, counts, options))
    return Object.create(program, { run: { value: run } })
  }
  return Object.create(device, { compile: { value: compile } })
}

/** A step to which a run's counts give no workgroups serves other lengths. */
const runs = (step: Step, counts: Counts): boolean => step.workgroups(counts).every((n) => n > 0)

/** The device with profiles of what ran. */
export function profilingWhatRan(device: Device): Device {
  return beforeRuns(device, (graph, counts, { onProfile, ...options }) => {
    const filtered = (p: Profile) => {
      const all = p.dispatches.length === graph.steps.length // else the device left out what did not run
      onProfile?.({
        ...p,
        dispatches: all ? p.dispatches.filter((_, i) => runs(graph.steps[i]!, counts)) : p.dispatches,
      })
    }
    return { ...options, onProfile: onProfile && filtered }
  })
}

/** The device, and the kernel names of its last run's dispatches. */
export function watched(device: Device): { device: Device; lastRun: () => readonly string[] } {
  let last: readonly string[] = []
  const watching = beforeRuns(device, (graph, counts, options) => {
    last = graph.steps.filter((step) => runs(step, counts)).map(({ kernel }) => kernel.name)
    return options
  })
  return { device: watching, lastRun: () => last }
}
