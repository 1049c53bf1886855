import { DeviceError } from '../errors.ts'
import type { Graph } from '../graph/graph.ts'
import type { Target } from '../graph/target.ts'
import type { Counts } from '../graph/tensor.ts'
import type { Device, Inputs, Outputs, Program, RunOptions } from './device.ts'
import { allFinite } from './formats.ts'
import { defaultPlace } from './place.ts'
import { type Probe, prove } from './prove.ts'
import { rememberedVerdicts, type Verdicts } from './verdicts.ts'

/** A model's program, recorded for what the device can do and recorded again for what it turns out not to do. */
export interface Recorded {
  program(): Promise<Program>
  /** Outputs are finite numbers, or those of the plain kernels too are not. */
  run(inputs: Inputs, counts: Counts, options?: RunOptions): Promise<Outputs>
}

export interface RecordedOptions {
  readonly probes?: readonly Probe[]
  readonly verdicts?: Verdicts
  /**
   * Runs build on what earlier ones left on the device, so that one that failed cannot be made good by repeating it: its
   * optional kernels are still tried and switched off, and the caller, who is told, may begin anew.
   */
  readonly stateful?: boolean
}

/** One for the process, so that its devices share their trials. */
export function remembered(): Verdicts {
  ofProcess ??= rememberedVerdicts(defaultPlace('verdicts'))
  return ofProcess
}
let ofProcess: Verdicts | undefined

/**
 * Records `build` for the device's target. Optional variants are proven first; one that fails later all the same is
 * switched off, and the request is answered without it.
 */
export function recordedProgram(
  device: Device,
  build: (target: Target) => Graph,
  { probes = [], verdicts = remembered(), stateful = false }: RecordedOptions = {},
): Recorded {
  let current: { target: Target; graph: Graph; program: Promise<Program> } | undefined

  const record = async (): Promise<{ graph: Graph; program: Program }> => {
    await prove(device, probes, verdicts)
    for (;;) {
      if (current?.target !== device.target) {
        const graph = build(device.target)
        const program = device.compile(graph)
        current = { target: device.target, graph, program }
        program.catch(() => {})
      }
      const { graph, program } = current
      try {
        return { graph, program: await program }
      } catch (error) {
        current = undefined
        const culprit = optional(graph).find((name) => (error as Error).message.startsWith(`${name}:`))
        if (!(error instanceof DeviceError) || error.code !== 'shader' || !culprit) throw error
        device.disable(culprit, firstLine(error))
      }
    }
  }

  /** Runs the plain kernels alone; where these succeed, the optional ones were at fault. */
  async function withoutOptional(graph: Graph, reason: string, inputs: Inputs, counts: Counts, options: RunOptions) {
    const suspects = optional(graph)
    const disabled = new Map([...device.target.disabled, ...suspects.map((name) => [name, reason] as const)])
    const plain = await device.compile(build({ ...device.target, disabled }))
    try {
      const outputs = await plain.run(inputs, counts, options)
      if (finite(outputs)) for (const name of suspects) device.disable(name, reason)
      return outputs
    } finally {
      plain.dispose()
    }
  }

  return {
    program: async () => (await record()).program,
    async run(inputs, counts, options = {}) {
      const { graph, program } = await record()
      const retry = (reason: string) => withoutOptional(graph, reason, inputs, counts, options)
      let outputs: Outputs
      try {
        outputs = await program.run(inputs, counts, options)
      } catch (error) {
        const fault = error instanceof DeviceError && (error.code === 'validation' || error.code === 'shader')
        if (!fault || optional(graph).length === 0) throw error
        const outputs = await retry(`a run failed: ${firstLine(error)}`)
        if (stateful) throw error
        return outputs
      }
      if (finite(outputs) || optional(graph).length === 0) return outputs
      return retry('a run gave numbers that are not finite')
    },
  }
}

/** The kernels of a graph that it can do without. */
const optional = (graph: Graph): string[] => [
  ...new Set(graph.steps.filter(({ kernel }) => kernel.optional).map(({ kernel }) => kernel.name)),
]
const finite = (outputs: Outputs): boolean => Object.values(outputs).every(allFinite)
const firstLine = (error: Error): string => error.message.split('\n')[0]!
