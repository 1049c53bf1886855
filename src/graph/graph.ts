import { ShapeError } from '../errors.ts'
import type { Constants, Kernel, Workgroups } from './kernel.ts'
import type { Target } from './target.ts'
import { type Counts, type Format, type Shape, sameShape, type Tensor, tensor } from './tensor.ts'

export interface Step {
  readonly kernel: Kernel
  readonly bindings: Readonly<Record<string, Tensor>>
  readonly constants: Constants
  readonly workgroups: (counts: Counts) => Workgroups
}

/** An op may record several steps for one value, each for other sizes: those that are not for this run do nothing. */
export const isIdle = (step: Step, counts: Counts): boolean => step.workgroups(counts).some((n) => n === 0)

/** Records steps in the order the model calls its ops. Nothing runs here. */
export class Graph {
  readonly target: Target
  readonly steps: Step[] = []
  readonly inputs = new Map<string, Tensor>()
  readonly outputs = new Map<string, Tensor>()
  readonly #names = new Map<number, string>()

  constructor(target: Target) {
    this.target = target
  }

  /** A tensor that the host writes before each run. */
  input(name: string, shape: Shape, format: Format = 'f32'): Tensor {
    if (this.inputs.has(name)) throw new ShapeError(`graph: input ${name} is declared twice`)
    const t = tensor({ label: name, shape, format, place: 'input', graph: this })
    this.inputs.set(name, t)
    return t
  }

  /** A tensor that is read back after each run. */
  output(name: string, t: Tensor): void {
    if (this.outputs.has(name)) throw new ShapeError(`graph: output ${name} is declared twice`)
    if (t.format !== 'f32' && t.format !== 'u32')
      throw new ShapeError(`graph: output ${name} is ${t.format}; read f32 or u32`)
    this.outputs.set(name, t)
  }

  /** Names a value for traces and profiles: 'layers.0.mixer_out'. Returns it. */
  name(t: Tensor, name: string): Tensor {
    this.#names.set(t.id, name)
    return t
  }

  nameOf = (t: Tensor): string => this.#names.get(t.id) ?? t.label
}

/** A value to be made: its shape and format. */
export interface Made {
  readonly shape: Shape
  readonly format?: Format
}

export interface Recording<W extends string> {
  readonly reads: Readonly<Record<string, Tensor>>
  /** New values, or existing tensors (pools) that the kernel changes in place. */
  readonly writes: Readonly<Record<W, Made | Tensor>>
  readonly constants: Constants
  readonly workgroups: Workgroups | ((counts: Counts) => Workgroups)
}

/** Adds one step and returns what it writes, by binding name. Names and order are the kernel's own. */
export function record<W extends string>(kernel: Kernel, r: Recording<W>): Record<W, Tensor> {
  const graph = graphOf(kernel.name, r.reads)
  expectNames(kernel, 'reads', kernel.reads, Object.keys(r.reads))
  expectNames(kernel, 'writes', kernel.writes, Object.keys(r.writes))
  const writes = Object.fromEntries(
    Object.entries<Made | Tensor>(r.writes).map(([name, w]) => {
      if ('id' in w) return [name, w]
      return [name, tensor({ format: 'f32', ...w, label: `${kernel.name}.${name}`, place: 'value', graph })]
    }),
  ) as Record<W, Tensor>
  const read = new Set(Object.values(r.reads).map((t) => t.id))
  for (const [name, t] of Object.entries<Tensor>(writes))
    if (read.has(t.id)) throw new ShapeError(`${kernel.name}: ${name} (${t.label}) is read and written by one dispatch`)
  const { workgroups } = r
  graph.steps.push({
    kernel,
    bindings: { ...r.reads, ...writes },
    constants: r.constants,
    workgroups: typeof workgroups === 'function' ? workgroups : () => workgroups,
  })
  return writes
}

/** The one graph that a step's values belong to; kept tensors belong to none. */
export function graphOf(op: string, reads: Readonly<Record<string, Tensor>>): Graph {
  const graphs = new Set(Object.values(reads).flatMap((t) => t.graph ?? []))
  const [graph] = graphs
  if (!graph) throw new ShapeError(`${op}: none of ${Object.keys(reads)} belongs to a graph; at least one input must`)
  if (graphs.size > 1) throw new ShapeError(`${op}: ${Object.keys(reads)} come from different graphs`)
  return graph
}

function expectNames(kernel: Kernel, what: string, expected: readonly string[], got: readonly string[]): void {
  if (sameShape(got as Shape, expected as Shape)) return
  throw new ShapeError(`${kernel.name}: ${what} are [${got}], expected [${expected}]`)
}
