import type { Device } from '../device/device.ts'
import { ShapeError, WeightsError } from '../errors.ts'
import type { Format, Tensor } from '../graph/tensor.ts'
import { ahead, planChunks } from './chunks.ts'
import { bytesPerValue, convert, type StoredFormat } from './convert.ts'
import { type RowTable, rowsInMemory, rowsOnDisk } from './rows.ts'
import type { Checkpoint, StoredTensor } from './safetensors.ts'

export type { RowTable }

/** What loading needs of a device. */
export type WeightDevice = Pick<Device, 'keep' | 'write' | 'flush' | 'release'>

export interface WeightsOptions {
  /** Canonical name of a stored tensor; undefined for one that is ignored. */
  readonly rename?: (stored: string) => string | undefined
  /** Format in which the device keeps matrices that are stored in `stored`. */
  readonly format: (stored: StoredFormat) => Format
}

export interface Progress {
  readonly loadedBytes: number
  readonly totalBytes: number
  /** The tensor that was read last. */
  readonly tensor: string
}

export interface LoadReport {
  /** Read from the checkpoint. */
  readonly bytes: number
  /** Weights that the device's format rounds. */
  readonly inexact: number
  /** Stored names of the tensors that nothing uses. */
  readonly ignored: readonly string[]
}

export interface StreamOptions {
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((progress: Progress) => void) | undefined
}

const flushBytes = 64 * 2 ** 20
/** Tables up to this size are held in memory, wherever they come from. */
const memoryBytes = 64 * 2 ** 20
/** Reads in flight: latency is what a network costs. */
const remoteReads = 4
const localReads = 2

const storedFormats: Readonly<Record<string, StoredFormat>> = { F32: 'f32', F16: 'f16', BF16: 'bf16' }

/** Takes bytes of a stored tensor from `offset` on; says how many bytes it wrote to the device and how many values it rounded. */
type Sink = (bytes: Uint8Array, offset: number) => { readonly written: number; readonly inexact: number }

/**
 * The weights of a checkpoint on a device. First every tensor is declared, which checks names, dtypes and shapes and
 * allocates; then `stream` reads them all once, in file order, a chunk at a time. Whatever fails, in a declaration or in
 * the stream, releases what was allocated.
 */
export class Weights {
  readonly #checkpoint: Checkpoint
  readonly #device: WeightDevice
  readonly #format: WeightsOptions['format']
  readonly #stored = new Map<string, StoredTensor>() // by canonical name
  readonly #names = new Map<StoredTensor, string>()
  readonly #sinks = new Map<StoredTensor, Sink[]>()
  readonly #ignored = new Set<StoredTensor>()
  readonly #kept: Tensor[] = []

  constructor(checkpoint: Checkpoint, device: WeightDevice, { rename = (name) => name, format }: WeightsOptions) {
    this.#checkpoint = checkpoint
    this.#device = device
    this.#format = format
    for (const stored of checkpoint.tensors.values()) {
      const name = rename(stored.name)
      if (name === undefined) {
        this.#ignored.add(stored)
        continue
      }
      const other = this.#stored.get(name)
      if (other) {
        const both = `${other.name} and ${stored.name}`
        throw new WeightsError('format', `${checkpoint.source.name}: ${both} are both ${name}; remove one`)
      }
      this.#stored.set(name, stored)
      this.#names.set(stored, name)
    }
  }

  /** Whether the checkpoint has a tensor of this canonical name. */
  has(name: string): boolean {
    return this.#stored.has(name)
  }

  /** The stored shape; undefined when there is no such tensor. */
  shapeOf(name: string): readonly number[] | undefined {
    return this.#stored.get(name)?.shape
  }

  /** A stored tensor of exactly this shape, in `format` or the one that the options give. */
  matrix(name: string, shape: readonly number[], format?: Format): Tensor {
    return this.#declare(() => this.#place(name, shape, [{ name, shape }], format))
  }

  /** Matrices [rows, width] one below another. */
  stack(label: string, parts: readonly { name: string; rows: number }[], width: number, format?: Format): Tensor {
    const shape = [parts.reduce((sum, part) => sum + part.rows, 0), width]
    const shaped = parts.map(({ name, rows }) => ({ name, shape: [rows, width] }))
    return this.#declare(() => this.#place(label, shape, shaped, format))
  }

  /** Small weights (norms, A_log, dt_bias, conv): always f32. */
  vector(name: string, shape: readonly number[]): Tensor {
    return this.matrix(name, shape, 'f32')
  }

  /** Small weights [width] one below another. */
  vectors(label: string, names: readonly string[], width: number): Tensor {
    const parts = names.map((name) => ({ name, shape: [width] }))
    return this.#declare(() => this.#place(label, [names.length, width], parts, 'f32'))
  }

  /** A table [rows, width] that stays on the host, in memory where it is small or its source is remote, else on disk. */
  rows(name: string, shape: readonly number[]): RowTable {
    return this.#declare(() => {
      if (shape.length !== 2) throw new ShapeError(`${name}: rows() has shape [${shape}], expected [rows, width]`)
      const { stored, format } = this.#find(name, shape)
      const { source } = this.#checkpoint
      if (!source.remote && stored.end - stored.begin > memoryBytes) {
        this.#sink(stored)
        return rowsOnDisk(source, stored, format)
      }
      const { table, fill } = rowsInMemory(stored, format)
      this.#sink(stored, (bytes, offset) => {
        fill(bytes, offset)
        return { written: 0, inexact: 0 }
      })
      return table
    })
  }

  /** Says that tensors of these canonical names are not needed. */
  ignore(test: (canonical: string) => boolean): void {
    for (const [name, stored] of this.#stored) if (test(name)) this.#ignored.add(stored)
  }

  /** Frees every tensor that was declared. */
  release(): void {
    for (const t of this.#kept.splice(0)) this.#device.release(t)
  }

  /**
   * Reads what was declared. Throws before reading when a tensor of the checkpoint is neither used nor ignored;
   * WeightsError for a file that cannot be read and for a value that the device's format cannot hold; the signal's own
   * reason when it is aborted.
   */
  async stream({ signal, onProgress }: StreamOptions = {}): Promise<LoadReport> {
    try {
      signal?.throwIfAborted()
      this.#expectAllUsed()
      const { bytes, inexact } = await this.#read(signal, onProgress)
      const ignored = [...this.#ignored].filter((t) => !this.#sinks.has(t)).map((t) => t.name)
      return { bytes, inexact, ignored }
    } catch (error) {
      this.release()
      throw error
    }
  }

  async #read(signal: AbortSignal | undefined, onProgress: StreamOptions['onProgress']) {
    const { source } = this.#checkpoint
    const used = [...this.#sinks].filter(([, sinks]) => sinks.length > 0).map(([stored]) => stored)
    const totalBytes = used.reduce((sum, t) => sum + t.end - t.begin, 0)
    let [loadedBytes, inexact, unflushed] = [0, 0, 0]
    const reads = planChunks(used).map((chunk) => async () => {
      signal?.throwIfAborted()
      return { chunk, bytes: await source.read(chunk.file, chunk.begin, chunk.end, signal) }
    })
    for await (const { chunk, bytes } of ahead(reads, source.remote ? remoteReads : localReads)) {
      signal?.throwIfAborted()
      for (const piece of chunk.pieces) {
        const part = bytes.subarray(piece.at, piece.at + piece.bytes)
        for (const sink of this.#sinks.get(piece.tensor)!) {
          const done = sink(part, piece.offset)
          inexact += done.inexact
          unflushed += done.written
        }
        loadedBytes += piece.bytes
      }
      if (unflushed >= flushBytes) {
        await this.#device.flush()
        unflushed = 0
      }
      onProgress?.({ loadedBytes, totalBytes, tensor: this.#names.get(chunk.pieces.at(-1)!.tensor)! })
    }
    await this.#device.flush()
    signal?.throwIfAborted()
    return { bytes: loadedBytes, inexact }
  }

  #expectAllUsed(): void {
    const unused = [...this.#stored]
      .filter(([, t]) => !this.#sinks.has(t) && !this.#ignored.has(t))
      .map(([name]) => name)
    if (unused.length === 0) return
    const some = unused.slice(0, 5).join(', ') + (unused.length > 5 ? ', ...' : '')
    throw new WeightsError(
      'unsupported',
      `${this.#checkpoint.source.name}: has ${unused.length} tensors that the model does not use (${some}); expected none`,
    )
  }

  /** Declarations allocate, so one that fails frees the earlier ones too. */
  #declare<T>(declaration: () => T): T {
    try {
      return declaration()
    } catch (error) {
      this.release()
      throw error
    }
  }

  #find(name: string, shape: readonly number[]): { stored: StoredTensor; format: StoredFormat } {
    const where = this.#checkpoint.source.name
    const stored = this.#stored.get(name)
    if (!stored) throw new WeightsError('missing', `${where}: has no tensor ${name}; expected one of shape [${shape}]`)
    if (stored.shape.length !== shape.length || stored.shape.some((d, i) => d !== shape[i])) {
      throw new WeightsError('shape', `${where}: ${stored.name} has shape [${stored.shape}], expected [${shape}]`)
    }
    const format = storedFormats[stored.dtype]
    if (format) return { stored, format }
    throw new WeightsError(
      'unsupported',
      `${where}: ${stored.name} has dtype ${stored.dtype}, expected F32, F16 or BF16`,
    )
  }

  #sink(stored: StoredTensor, ...sinks: Sink[]): void {
    this.#sinks.set(stored, [...(this.#sinks.get(stored) ?? []), ...sinks])
  }

  /** One kept tensor that holds the parts one after another. */
  #place(
    label: string,
    shape: readonly number[],
    parts: readonly { name: string; shape: readonly number[] }[],
    as?: Format,
  ) {
    const found = parts.map((part) => this.#find(part.name, part.shape))
    const formats = new Set(found.map(({ format }) => as ?? this.#format(format)))
    const [first] = formats
    const format = formats.size === 1 ? first : 'f32' // parts of several formats: the one that holds them all
    if (format === undefined || format === 'u32') {
      throw new ShapeError(`${label}: weights have format ${format}, expected f32, f16 or bf16`)
    }
    const kept = this.#device.keep(label, shape, format)
    this.#kept.push(kept)
    let base = 0
    for (const { stored, format: from } of found) {
      if (base % 4 !== 0)
        throw new ShapeError(`${label}: ${stored.name} begins at byte ${base}, expected a multiple of 4`)
      const start = base
      this.#sink(stored, (bytes, offset) => {
        const converted = convert(bytes, from, format, stored.name)
        const data = padded(converted.bytes)
        this.#device.write(kept, data, start + (offset / bytesPerValue[from]) * bytesPerValue[format])
        return { written: data.length, inexact: converted.inexact }
      })
      base += ((stored.end - stored.begin) / bytesPerValue[from]) * bytesPerValue[format]
    }
    return kept
  }
}

/** Devices take multiples of 4 bytes; an odd number of halves gets a zero behind it. */
function padded(bytes: Uint8Array): Uint8Array {
  if (bytes.length % 4 === 0) return bytes
  const whole = new Uint8Array(Math.ceil(bytes.length / 4) * 4)
  whole.set(bytes)
  return whole
}
