import type { Device } from '../device/device.ts'
import { DeviceError, ShapeError, WeightsError } from '../errors.ts'
import { bytes, type Format, type Tensor } from '../graph/tensor.ts'
import { bytesPerValue, type StoredFormat } from './convert.ts'
import { type HostValues, type RowTable, rowsInMemory, rowsOnDisk, valuesInMemory } from './rows.ts'
import type { Checkpoint, StoredTensor } from './safetensors.ts'
import * as sinks from './sinks.ts'
import { byteSize } from './sizes.ts'
import { type StreamOptions, streamInto } from './stream.ts'

export type { Progress, StreamOptions } from './stream.ts'
export type { HostValues, RowTable }

/** What loading needs of a device. */
export type WeightDevice = Pick<Device, 'keep' | 'write' | 'flush' | 'release'>

export interface WeightsOptions {
  /** Canonical name of a stored tensor; undefined for one that is ignored. */
  readonly rename?: (stored: string) => string | undefined
  /** Format in which the device keeps matrices that are stored in `stored`. */
  readonly format: (stored: StoredFormat) => Format
}

export interface LoadReport {
  /** Read from the checkpoint. */
  readonly bytes: number
  /** Weights that the device's format rounds. */
  readonly inexact: number
  /** Stored names of the tensors that nothing uses. */
  readonly ignored: readonly string[]
}

/** Tables up to this size are held in memory, wherever they come from. */
const memoryBytes = 64 * 2 ** 20
const storedFormats: Readonly<Record<string, StoredFormat>> = { F32: 'f32', F16: 'f16', BF16: 'bf16' }

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
  readonly #sinks = new Map<StoredTensor, sinks.Sink[]>()
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
  matrix(name: string, shape: readonly number[], format?: Format | undefined): Tensor {
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

  /** A stored tensor with its values in another order, as `arrangement` says; as many as `kept` has. */
  arranged(
    name: string,
    shape: readonly number[],
    kept: readonly number[],
    arrangement: sinks.Arrangement,
    as?: Format,
  ): Tensor {
    return this.#declare(() => {
      const { stored, format: from } = this.#find(name, shape)
      const to = sinks.weightFormat(name, as ?? this.#format(from))
      if (to === 'q8') throw new ShapeError(`${name}: q8 is for matrices as they are stored`)
      const t = this.#keep(name, kept, to)
      const [bytes, values] = [stored.end - stored.begin, kept.reduce((n, d) => n * d, 1)]
      this.#sink(
        stored,
        sinks.arranging({ name: stored.name, from, to, bytes, values }, arrangement, (data) =>
          this.#device.write(t, data),
        ),
      )
      return t
    })
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
      this.#sink(stored, sinks.heldBy(fill))
      return table
    })
  }

  /** A small tensor that the host computes with, as f32. */
  values(name: string, shape: readonly number[]): HostValues {
    return this.#declare(() => {
      const { stored, format } = this.#find(name, shape)
      const { values, fill } = valuesInMemory(stored, format)
      this.#sink(stored, sinks.heldBy(fill))
      return values
    })
  }

  /** Says that tensors of these canonical names are not needed. */
  ignore(test: (canonical: string) => boolean): void {
    for (const [name, stored] of this.#stored) if (test(name)) this.#ignored.add(stored)
  }

  /** Of all that was declared, on the device. */
  get deviceBytes(): number {
    return this.#kept.reduce((sum, kept) => sum + bytes(kept, { T: 0, S: 0, C: 0, R: 0 }), 0)
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
      await this.#expectRoom()
      const { source } = this.#checkpoint
      const { bytes, inexact } = await streamInto(this.#sinks, source, this.#device, { signal, onProgress })
      const ignored = [...this.#ignored].filter((t) => !this.#sinks.has(t)).map((t) => t.name)
      return { bytes, inexact, ignored }
    } catch (error) {
      this.release()
      throw error
    }
  }

  /** A device answers allocations late: a full one is heard before anything is downloaded. */
  async #expectRoom(): Promise<void> {
    await this.#device.flush().catch((error) => {
      if (!(error instanceof DeviceError) || error.code !== 'memory') throw error
      const needs = `${this.#checkpoint.source.name}: needs ${byteSize(this.deviceBytes)} on the device for its weights`
      throw new DeviceError('memory', `${needs}; ${error.message}`, { cause: error })
    })
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

  #sink(stored: StoredTensor, ...more: sinks.Sink[]): void {
    this.#sinks.set(stored, [...(this.#sinks.get(stored) ?? []), ...more])
  }

  #keep(label: string, shape: readonly number[], format: Format): Tensor {
    const kept = this.#device.keep(label, shape, format)
    this.#kept.push(kept)
    return kept
  }

  /** One kept tensor that holds the parts one after another. */
  #place(
    label: string,
    shape: readonly number[],
    parts: readonly { name: string; shape: readonly number[] }[],
    as?: Format | undefined,
  ) {
    const found = parts.map((part) => this.#find(part.name, part.shape))
    const formats = new Set(found.map(({ format }) => as ?? this.#format(format)))
    const [first] = formats
    const format = sinks.weightFormat(label, formats.size === 1 ? first : 'f32') // several: the one that holds them all
    if (format === 'q8' && (found.length > 1 || shape.at(-1)! % sinks.Q8_COLUMNS !== 0))
      throw new ShapeError(`${label}: q8 is for single matrices whose rows are multiples of ${sinks.Q8_COLUMNS}`)
    const kept = this.#keep(label, shape, format)
    let base = 0
    for (const { stored, format: from } of found) {
      if (base % 4 !== 0)
        throw new ShapeError(`${label}: ${stored.name} begins at byte ${base}, expected a multiple of 4`)
      if (format === 'q8') this.#sink(stored, sinks.quantizedInto(this.#device, kept, stored, from))
      else this.#sink(stored, sinks.convertedInto(this.#device, kept, stored, from, format, base))
      if (format !== 'q8') base += ((stored.end - stored.begin) / bytesPerValue[from]) * bytesPerValue[format]
    }
    return kept
  }
}
