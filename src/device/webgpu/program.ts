import { DeviceError, ShapeError } from '../../errors.ts'
import { type Graph, isIdle, type Step } from '../../graph/graph.ts'
import type { Cost, View, Workgroups } from '../../graph/kernel.ts'
import { maxTokens, plan } from '../../graph/plan.ts'
import { bytes, type Counts, leading, rowSize, type Tensor } from '../../graph/tensor.ts'
import type { Inputs, Outputs, Profile, Program, RunOptions, Traced } from '../device.ts'
import type { Fill } from '../fill.ts'
import { decode } from '../formats.ts'
import { AHEAD_MS } from './pace.ts'
import type { Parts } from './parts.ts'
import { type Stopwatch, stopwatch } from './profile.ts'

interface Dispatch {
  readonly step: Step
  readonly pipeline: GPUComputePipeline
  readonly layout: GPUBindGroupLayout
}

/** What a run brings for an input. */
interface Given {
  readonly to: Tensor
  readonly bytes: Fill | Uint8Array<ArrayBuffer>
}

/** A dispatch of one run. */
interface Job {
  readonly step: Step
  readonly pipeline: GPUComputePipeline
  readonly group: GPUBindGroup
  readonly size: Workgroups
  readonly cost: Cost
}

/** A compiled graph. Each run encodes its dispatches afresh, since a command buffer can be submitted once. */
export async function webgpuProgram(parts: Parts, graph: Graph): Promise<Program> {
  const { gpu, pipelines, slots, kept, readback, uploads, faults, queue, ring } = parts
  const layout = plan(graph)
  const { bindingBytes, workgroups: mostWorkgroups } = graph.target.limits
  const most = maxTokens(layout, bindingBytes)
  faults.check()
  const dispatches: Dispatch[] = await faults.during(
    Promise.all(
      graph.steps.map(async (step) => ({ step, pipeline: await pipelines.of(step), layout: pipelines.layout(step) })),
    ),
  )
  const outputs = [...graph.outputs]
  const bound = new Set(graph.steps.flatMap(({ bindings }) => Object.values(bindings).map(({ id }) => id)))
  let groups: GPUBindGroup[] = []
  let groupsOf = ''
  let lastJobs: { readonly of: string; readonly jobs: readonly Job[] } | undefined
  let proven = false // the first run is checked with error scopes
  let unread: number | undefined // the errors that were known before the runs that nobody has read since
  let disposed = false

  const bufferOf = (t: Tensor): GPUBuffer => (t.place === 'kept' ? kept.get(t).buffer : slots.buffer(layout.slotOf(t)))

  /** Makes room for the run, and bind groups anew where buffers were replaced. */
  async function prepare(data: readonly Given[], counts: Counts): Promise<void> {
    if (disposed) throw new DeviceError('disposed', 'run: the program was disposed of')
    if (counts.T > most)
      throw new DeviceError(
        'limit',
        `run: ${counts.T} tokens, at most ${most} fit the ${bindingBytes} bytes of a binding; run them in pieces`,
      )
    const capacity = Math.min(most, Math.max(64, 2 ** Math.ceil(Math.log2(counts.T))))
    await kept.check(bound)
    await slots.reserve(layout.slots, capacity)
    await uploads.reserve(data.map(({ bytes }) => bytes.byteLength))
    faults.check()
    const generation = `${slots.generation} ${kept.generation}`
    if (generation === groupsOf) return
    groups = dispatches.map(({ step, layout }) => {
      const { kernel, bindings } = step
      const entries = [...kernel.reads, ...kernel.writes].map((name, binding) => ({
        binding,
        resource: { buffer: bufferOf(bindings[name]!) },
      }))
      return gpu.createBindGroup({ label: kernel.name, layout, entries })
    })
    groupsOf = generation
  }

  /** Where each input goes, and what of it. Throws ShapeError for one that is missing or too short. */
  function dataOf(inputs: Inputs, counts: Counts): Given[] {
    return [...graph.inputs].map(([name, to]) => {
      const data = inputs[name]
      if (!data) throw new ShapeError(`run: input ${name} is missing`)
      const need = bytes(to, counts)
      const { byteLength } = data
      const view = ArrayBuffer.isView(data)
      if (view ? byteLength < need : byteLength > need)
        throw new ShapeError(`run: input ${name} has ${byteLength} bytes, expected ${need}`)
      return { to, bytes: view ? new Uint8Array(data.buffer as ArrayBuffer, data.byteOffset, need) : data }
    })
  }

  function write(data: readonly Given[]): void {
    for (const { to, bytes } of data) uploads.write(bufferOf(to), bytes)
  }

  /** What this run dispatches; call when its bind groups are there. Runs of one size after another share it. */
  function jobsOf(counts: Counts): readonly Job[] {
    const { T, S, C, R } = counts
    const of = `${T} ${S} ${C} ${R} ${groupsOf}`
    if (lastJobs?.of !== of) lastJobs = { of, jobs: makeJobs(counts) }
    return lastJobs.jobs
  }

  const makeJobs = (counts: Counts): Job[] =>
    dispatches.flatMap(({ step, pipeline }, i) => {
      const size = step.workgroups(counts)
      if (size.some((n) => n === 0)) return [] // not for runs of this size
      if (size.some((n) => n > mostWorkgroups))
        throw new DeviceError(
          'limit',
          `${step.kernel.name}: [${size}] workgroups, at most ${mostWorkgroups} in each dimension`,
        )
      return [{ step, pipeline, group: groups[i]!, size, cost: step.kernel.cost(step.constants, counts) }]
    })

  function encode(pass: GPUComputePassEncoder, { pipeline, group, size }: Job): void {
    pass.setPipeline(pipeline)
    pass.setBindGroup(0, group)
    pass.dispatchWorkgroups(...size)
  }

  /** Encodes and submits in few pieces: none takes long on the GPU, and aborts are heard in between. */
  async function submit(
    jobs: readonly Job[],
    counts: Counts,
    staging: readonly GPUBuffer[],
    watch: Stopwatch | undefined,
    signal: AbortSignal | undefined,
  ): Promise<{ submits: number; encodeMs: number }> {
    const waited = staging.length > 0 || watch !== undefined
    const pieces = parts.pace.pieces(
      jobs.map(({ cost }) => cost),
      waited,
    )
    const offset = ring.write(counts)
    let encodeMs = 0
    const waiting: { ms: number; done: Promise<unknown> }[] = [] // on the GPU, as far as is known
    for (const { from, to, ms } of pieces) {
      while (total(waiting) > AHEAD_MS) await faults.during(waiting.shift()!.done, signal)
      signal?.throwIfAborted()
      const start = performance.now()
      const encoder = gpu.createCommandEncoder()
      let pass: GPUComputePassEncoder | undefined
      for (let i = from; i < to; i++) {
        if (!pass) {
          pass = encoder.beginComputePass(watch ? { timestampWrites: watch.pass(i) } : {})
          pass.setBindGroup(1, ring.group, [offset])
        }
        encode(pass, jobs[i]!)
        if (!watch) continue
        pass.end()
        pass = undefined
      }
      pass?.end()
      if (to === jobs.length) {
        staging.forEach((to, i) => {
          const t = outputs[i]![1]
          encoder.copyBufferToBuffer(bufferOf(t), 0, to, 0, bytes(t, counts))
        })
        watch?.resolve(encoder)
      }
      gpu.queue.submit([encoder.finish()])
      if (to < jobs.length) waiting.push({ ms, done: gpu.queue.onSubmittedWorkDone() })
      encodeMs += performance.now() - start
    }
    return { submits: pieces.length, encodeMs }
  }

  /** A run up to its last submit: the device's next run may begin while this one is read back. */
  async function send(inputs: Inputs, counts: Counts, { signal, onProfile, read = true }: RunOptions) {
    const mark = unread ?? faults.mark()
    unread = read ? undefined : mark
    const staging: GPUBuffer[] = []
    let watch: Stopwatch | undefined
    try {
      const data = dataOf(inputs, counts)
      await prepare(data, counts)
      if (read) for (const [, t] of outputs) staging.push(await readback.take(bytes(t, counts)))
      const jobs = jobsOf(counts)
      if (onProfile) watch = await stopwatch(parts, jobs.length)
      signal?.throwIfAborted()
      const work = () => {
        write(data)
        return submit(jobs, counts, staging, watch, signal)
      }
      const sent = await (proven ? work() : faults.scoped('run', work))
      proven = true
      return { ...sent, mark, jobs, staging, watch }
    } catch (error) {
      staging.forEach(readback.give)
      watch?.dispose()
      throw error
    }
  }

  async function run(inputs: Inputs, counts: Counts, options: RunOptions = {}): Promise<Outputs> {
    const { signal, onProfile } = options
    const start = performance.now()
    const { mark, jobs, staging, watch, ...sent } = await queue(() => send(inputs, counts, options), signal)
    try {
      const reads = staging.map((buffer, i) => readback.read(buffer, bytes(outputs[i]![1], counts)))
      const data = await faults.during(Promise.all(reads), signal, mark)
      const totalMs = performance.now() - start
      if (staging.length > 0) parts.pace.learn(totalMs) // else nobody waited for the work
      const times = await watch?.read()
      if (times) {
        const { ms, spanMs } = times
        onProfile?.({ ...sent, spanMs, totalMs, dispatches: jobs.map((job, i) => named(job, ms[i]!)) })
      }
      return Object.fromEntries(data.map((bytes, i) => [outputs[i]![0], new Float32Array(bytes)]))
    } catch (error) {
      unread = undefined // it is told now
      throw error
    } finally {
      watch?.dispose()
    }
  }

  const named = ({ step, cost }: Job, ms: number): Profile['dispatches'][number] => {
    const { kernel, bindings } = step
    return { kernel: kernel.name, name: graph.nameOf(bindings[kernel.writes[0]!]!), ms, ...cost }
  }

  async function trace(inputs: Inputs, counts: Counts): Promise<Traced[]> {
    return queue(async () => {
      const data = dataOf(inputs, counts)
      await prepare(data, counts)
      write(data)
      const traced: Traced[] = []
      for (const job of jobsOf(counts)) {
        const encoder = gpu.createCommandEncoder()
        const pass = encoder.beginComputePass()
        pass.setBindGroup(1, ring.group, [ring.write(counts)])
        encode(pass, job)
        pass.end()
        gpu.queue.submit([encoder.finish()])
        const { step } = job
        for (const name of step.kernel.writes) traced.push(await traceOf(step, step.bindings[name]!, counts))
      }
      return traced
    })
  }

  async function traceOf(step: Step, t: Tensor, counts: Counts): Promise<Traced> {
    const pool = t.shape[0] === '*' ? kept.get(t).rows : 0
    const data: View = decode(await parts.download(bufferOf(t), bytes(t, counts, pool)), t.format)
    const shape = [leading(t, counts, pool), ...(t.shape.slice(1) as number[])]
    const view = data.subarray(0, shape[0]! * rowSize(t))
    return { kernel: step.kernel.name, name: graph.nameOf(t), shape, data: view }
  }

  return {
    maxTokens: most,
    dispatches: (counts) => graph.steps.filter((step) => !isIdle(step, counts)).length,
    run,
    trace,
    dispose() {
      disposed = true
      groups = []
      lastJobs = undefined
    },
  }
}

const total = (pieces: readonly { readonly ms: number }[]): number => pieces.reduce((sum, { ms }) => sum + ms, 0)
