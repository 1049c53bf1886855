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
  let lastRead = 0 // a run that was sent before has begun then
  let unreadWork: { readonly called: number; readonly thoughtMs: number } | undefined // of runs since the last reading
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

  function write(encoder: GPUCommandEncoder, data: readonly Given[]): void {
    for (const { to, bytes } of data) uploads.write(encoder, bufferOf(to), bytes)
  }

  /** What this run dispatches; begin when its bind groups are there. Runs of one size after another share it. */
  function* jobsOf(counts: Counts): Iterable<Job> {
    const { T, S, C, R } = counts
    const of = `${T} ${S} ${C} ${R} ${groupsOf}`
    if (lastJobs?.of === of) return yield* lastJobs.jobs
    const jobs: Job[] = []
    for (const [i, { step, pipeline }] of dispatches.entries()) {
      const size = step.workgroups(counts)
      if (size.includes(0)) continue // not for runs of this size
      if (size.some((n) => n > mostWorkgroups))
        throw new DeviceError(
          'limit',
          `${step.kernel.name}: [${size}] workgroups, at most ${mostWorkgroups} in each dimension`,
        )
      const job = { step, pipeline, group: groups[i]!, size, cost: step.kernel.cost(step.constants, counts) }
      jobs.push(job)
      yield job
    }
    lastJobs = { of, jobs }
  }

  function encode(pass: GPUComputePassEncoder, { pipeline, group, size }: Job): void {
    pass.setPipeline(pipeline)
    pass.setBindGroup(0, group)
    pass.dispatchWorkgroups(...size)
  }

  /** Encodes and submits in few pieces: none takes long on the GPU, and aborts are heard in between. */
  async function submit(
    data: readonly Given[],
    jobs: Iterable<Job>,
    counts: Counts,
    staging: readonly GPUBuffer[],
    watch: Stopwatch | undefined,
    signal: AbortSignal | undefined,
  ): Promise<{ submits: number; encodeMs: number; thoughtMs: number }> {
    const waited = staging.length > 0 || watch !== undefined
    const offset = ring.write(counts)
    let [submits, encodeMs, thoughtMs, dispatched] = [0, 0, 0, 0]
    const waiting: { ms: number; done: Promise<unknown> }[] = [] // on the GPU, as far as is known
    for (const { jobs: piece, ms, isLast } of parts.pace.pieces(jobs, waited)) {
      while (total(waiting) > AHEAD_MS) await faults.during(waiting.shift()!.done, signal)
      signal?.throwIfAborted()
      const encoder = gpu.createCommandEncoder()
      if (submits === 0) write(encoder, data)
      const start = performance.now()
      let pass: GPUComputePassEncoder | undefined
      for (const job of piece) {
        if (!pass) {
          pass = encoder.beginComputePass(watch ? { timestampWrites: watch.pass(dispatched) } : {})
          pass.setBindGroup(1, ring.group, [offset])
        }
        encode(pass, job)
        dispatched++
        if (!watch) continue
        pass.end()
        pass = undefined
      }
      pass?.end()
      if (isLast) {
        staging.forEach((to, i) => {
          const t = outputs[i]![1]
          encoder.copyBufferToBuffer(bufferOf(t), 0, to, 0, bytes(t, counts))
        })
        watch?.resolve(encoder)
      }
      gpu.queue.submit([encoder.finish()])
      if (submits === 0) uploads.submitted()
      if (!isLast) waiting.push({ ms, done: gpu.queue.onSubmittedWorkDone() })
      submits++
      thoughtMs += ms
      encodeMs += performance.now() - start
    }
    return { submits, encodeMs, thoughtMs }
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
      const profiled = onProfile ? [...jobsOf(counts)] : []
      if (onProfile) watch = await stopwatch(parts, profiled.length)
      signal?.throwIfAborted()
      const work = () => submit(data, jobsOf(counts), counts, staging, watch, signal)
      const sent = await (proven ? work() : faults.scoped('run', work))
      proven = true
      return { ...sent, mark, profiled, staging, watch }
    } catch (error) {
      staging.forEach(readback.give)
      watch?.dispose()
      throw error
    }
  }

  async function run(inputs: Inputs, counts: Counts, options: RunOptions = {}): Promise<Outputs> {
    const { signal, onProfile } = options
    const called = performance.now()
    const { mark, profiled, staging, watch, thoughtMs, ...sent } = await queue(
      () => send(inputs, counts, options),
      signal,
    )
    const work = { called: unreadWork?.called ?? called, thoughtMs: (unreadWork?.thoughtMs ?? 0) + thoughtMs }
    unreadWork = staging.length > 0 ? undefined : work
    try {
      const reads = staging.map((buffer, i) => readback.read(buffer, bytes(outputs[i]![1], counts)))
      const data = await faults.during(Promise.all(reads), signal, mark)
      const now = performance.now()
      const totalMs = now - Math.max(called, lastRead)
      if (staging.length > 0) {
        parts.pace.learn(now - Math.max(work.called, lastRead), work.thoughtMs)
        lastRead = now
      }
      const times = await watch?.read()
      if (times) {
        const { ms, spanMs } = times
        onProfile?.({ ...sent, spanMs, totalMs, dispatches: profiled.map((job, i) => named(job, ms[i]!)) })
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
      const traced: Traced[] = []
      for (const job of jobsOf(counts)) {
        const encoder = gpu.createCommandEncoder()
        if (traced.length === 0) write(encoder, data)
        const pass = encoder.beginComputePass()
        pass.setBindGroup(1, ring.group, [ring.write(counts)])
        encode(pass, job)
        pass.end()
        gpu.queue.submit([encoder.finish()])
        uploads.submitted()
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
