import { DeviceError, ShapeError } from '../../errors.ts'
import type { Limits } from '../../graph/target.ts'
import { bytes, type Counts, rowBytes, type Tensor } from '../../graph/tensor.ts'
import type { Faults, Watched } from './faults.ts'
import { COPY_DST, COPY_SRC, type Ledger, STORAGE } from './memory.ts'

export interface Stored {
  readonly buffer: GPUBuffer
  readonly rows: number
}

/**
 * The tensors that outlive runs. The calls return at once and the GPU answers later, so what goes wrong with a tensor
 * is remembered with it and thrown by the next run that binds it, and by every flush.
 */
export interface Kept {
  add(t: Tensor, rows: number): void
  /** Where there is no room, the pool stays as it was. */
  grow(pool: Tensor, rows: number): void
  write(t: Tensor, data: Uint8Array, byteOffset: number): void
  release(t: Tensor): void
  clear(): void
  get(t: Tensor): Stored
  /** Throws what went wrong with a tensor, of these (by id) or of all. */
  check(ids?: ReadonlySet<number>): Promise<void>
  /** Counts the buffers that were replaced: bind groups made before are stale. */
  readonly generation: number
  readonly bytes: number
}

interface Held {
  buffer: GPUBuffer
  rows: number
  /** What the pool goes back to, while nobody knows whether there is room for it grown. */
  fallback?: Stored | undefined
}

/** `lasting`: the tensor holds nothing of use; else it is as it was before, and one call hears of it. */
interface Trouble {
  readonly error: DeviceError
  readonly lasting: boolean
}

export function keptTensors(gpu: GPUDevice, memory: Ledger, faults: Faults, limits: Limits): Kept {
  const kept = new Map<number, Held>()
  const troubles = new Map<number, Promise<Trouble | undefined>>() // not yet known, or known and bad
  let generation = 0

  const find = (t: Tensor): Held => {
    faults.check()
    const found = kept.get(t.id)
    if (!found) throw new ShapeError(`webgpu: ${t.label} is not kept on this device`)
    return found
  }
  const allocate = (t: Tensor, rows: number): Watched<GPUBuffer> => {
    const size = bytes(t, none, rows)
    const most = Math.min(limits.bindingBytes, limits.bufferBytes)
    if (size > most)
      throw new DeviceError('limit', `keep: ${t.label} has ${size} bytes, this device binds at most ${most}`)
    return memory.create(t.label, size, STORAGE | COPY_SRC | COPY_DST)
  }
  /** The first trouble of a tensor counts: later ones follow from it. */
  const note = ({ id }: Tensor, error: Promise<DeviceError | undefined>, lasting: boolean) => {
    const trouble = Promise.all([troubles.get(id), error]).then(
      ([before, error]) => before ?? (error && { error, lasting }),
    )
    troubles.set(id, trouble)
    trouble.then((found) => {
      if (!found && troubles.get(id) === trouble) troubles.delete(id)
    })
    return trouble
  }

  return {
    add(t, rows) {
      const { result, error } = allocate(t, rows)
      kept.set(t.id, { buffer: result, rows })
      note(t, error, true)
    },

    grow(pool, rows) {
      const held = find(pool)
      if (held.rows >= rows) return
      const old = held.buffer
      const made = allocate(pool, rows)
      const copied = faults.watch(`grow ${pool.label}`, () => {
        const encoder = gpu.createCommandEncoder()
        encoder.copyBufferToBuffer(old, 0, made.result, 0, held.rows * rowBytes(pool))
        gpu.queue.submit([encoder.finish()])
      })
      held.fallback ??= { buffer: old, rows: held.rows }
      held.buffer = made.result
      held.rows = rows
      generation++
      const both = Promise.all([made.error, copied.error]).then(([made, copied]) => made ?? copied)
      note(pool, both, false).then((failed) => {
        if (held.buffer !== made.result || !held.fallback) return memory.destroy(made.result) // it grew again since
        const { fallback } = held
        held.fallback = undefined
        if (!failed || failed.lasting) return memory.destroy(fallback.buffer)
        memory.destroy(made.result)
        held.buffer = fallback.buffer
        held.rows = fallback.rows
        generation++
      })
    },

    write(t, data, byteOffset) {
      const { buffer } = find(t)
      const { error } = faults.watch(`write ${t.label}`, () =>
        gpu.queue.writeBuffer(buffer, byteOffset, data.buffer as ArrayBuffer, data.byteOffset, data.byteLength),
      )
      note(t, error, true)
    },

    release({ id }) {
      const held = kept.get(id)
      if (!held) return
      memory.destroy(held.buffer)
      if (held.fallback) memory.destroy(held.fallback.buffer)
      kept.delete(id)
      troubles.delete(id)
    },

    clear() {
      kept.clear()
      troubles.clear()
    },

    get: find,

    async check(ids) {
      faults.check()
      const asked = [...troubles].filter(([id]) => !ids || ids.has(id))
      if (asked.length === 0) return
      const found = await faults.during(
        Promise.all(
          asked.map(async ([id, trouble]) => {
            const known = await trouble
            if (known && !known.lasting && troubles.get(id) === trouble) troubles.delete(id) // it is told now
            return known
          }),
        ),
      )
      const first = found.find((trouble) => trouble !== undefined)
      if (first) throw first.error
    },

    get generation() {
      return generation
    },
    get bytes() {
      return [...kept.values()].reduce((n, { buffer }) => n + buffer.size, 0)
    },
  }
}

const none: Counts = { T: 0, S: 0, C: 0, R: 0 }
