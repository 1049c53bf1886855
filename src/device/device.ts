import type { Graph } from '../graph/graph.ts'
import type { Precision, Target } from '../graph/target.ts'
import type { Counts, Format, Shape, Tensor } from '../graph/tensor.ts'
import type { Fill } from './fill.ts'

export type DeviceKind = 'webgpu' | 'cpu'

/** Where programs run. Buffers, pipelines and queues stay behind it. All calls on one device are first in, first out. */
export interface Device extends AsyncDisposable {
  readonly kind: DeviceKind
  /** What graphs are recorded for. Changes when a variant is disabled. */
  readonly target: Target
  readonly report: DeviceReport
  readonly memory: Memory
  /** Settles, never rejects, when the device goes away by itself. */
  readonly lost: Promise<string>

  /**
   * Allocates a tensor that outlives runs, zeroed. A pool (leading '*') starts with `rows` rows. A GPU answers later:
   * where there is no room, `flush` and every run that binds the tensor reject with DeviceError 'memory'.
   */
  keep(label: string, shape: Shape, format: Format, rows?: number): Tensor
  /**
   * Enlarges a pool to at least `rows` rows; what it holds stays. Where there is no room, the next run that binds it
   * rejects with DeviceError 'memory', and the pool is as it was.
   */
  grow(pool: Tensor, rows: number): void
  /** Writes bytes of the tensor's own format; offset and length are multiples of 4. */
  write(t: Tensor, data: Uint8Array, byteOffset?: number): void
  /** The bytes of a kept tensor, in its own format. For tests and snapshots. */
  read(t: Tensor): Promise<Uint8Array>
  /** Resolves when all that was kept and written has arrived, or rejects; frees the staging copies of writes. */
  flush(): Promise<void>
  release(t: Tensor): void

  /** Switches a variant off for this process; graphs recorded from now on do without it. */
  disable(variant: string, reason: string): void

  /** Compiles a graph once; a run of any length adds no pipeline. */
  compile(graph: Graph): Promise<Program>

  /**
   * Opens the same choice with the same options again, as after a loss; this device stays what it is. Rejects with
   * DeviceError 'unavailable' for a device over a caller's GPUDevice: the caller has to bring another.
   */
  reopen(): Promise<Device>

  /** Frees everything that was made here; what is pending rejects. A caller's own GPUDevice lives on. */
  dispose(): Promise<void>
}

export interface Program {
  /** Most tokens that one run takes, by the binding limit. */
  readonly maxTokens: number
  /** Dispatches of a run of this size. */
  dispatches(counts: Counts): number
  run(inputs: Inputs, counts: Counts, options?: RunOptions): Promise<Outputs>
  /** Runs step by step and reads back every value that a step makes. Slow: for debugging. */
  trace(inputs: Inputs, counts: Counts): Promise<Traced[]>
  dispose(): void
}

/** A `Fill` may have fewer bytes than its input, where the run does not read the rest. */
export type Inputs = Readonly<Record<string, Float32Array | Uint32Array | Uint8Array | Fill>>
export type Outputs = Readonly<Record<string, Float32Array>>

export interface RunOptions {
  /** Heard while the run waits, between submits and while it reads back; on the CPU between two steps. */
  readonly signal?: AbortSignal | undefined
  /** Called with the time of every dispatch; needs timestamp-query on a GPU. */
  readonly onProfile?: ((profile: Profile) => void) | undefined
  /**
   * false: the outputs are not read back; resolves to none as soon as the work is submitted, so that several runs can
   * wait on the GPU. What goes wrong there rejects a later run of this program, at the latest one that reads.
   * Default true.
   */
  readonly read?: boolean
}

export interface Profile {
  readonly dispatches: readonly ProfiledDispatch[]
  readonly submits: number
  readonly encodeMs: number
  /** From the begin of the first dispatch to the end of the last one; what it exceeds their sum by are gaps. */
  readonly spanMs: number
  readonly totalMs: number
}

export interface ProfiledDispatch {
  readonly kernel: string
  readonly name: string // of what it makes
  readonly ms: number
  readonly flops: number
  readonly bytes: number
}

export interface Traced {
  readonly kernel: string
  readonly name: string
  readonly shape: readonly number[]
  readonly data: Float32Array | Uint32Array
}

export interface Memory {
  readonly keptBytes: number
  readonly slotBytes: number
  readonly buffers: number
  readonly pipelines: number
}

export interface DeviceReport {
  readonly kind: DeviceKind
  /** 'NVIDIA H200 through Vulkan', 'CPU, TypeScript reference kernels'. */
  readonly name: string
  /** The adapter and its driver as exactly as the host tells: what is kept for them is kept under this. */
  readonly adapter: string
  /** Why this one: the choice that was asked for, or what `auto` found. */
  readonly why: string
  readonly software: boolean
  readonly precision: Precision
  /** Formats in use: matrix operands and cache. */
  readonly dtype: string
  readonly features: readonly string[]
  readonly disabled: readonly { readonly variant: string; readonly reason: string }[]
  /** The day when plans were last measured on this adapter that are in use now. */
  readonly tuned: string | undefined
  /** All of it on one line, for people. */
  readonly line: string
}
