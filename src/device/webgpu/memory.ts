import type { SlotSize } from '../../graph/plan.ts'
import { slotBytes } from '../../graph/plan.ts'
import type { Faults, Watched } from './faults.ts'

export const STORAGE = 0x80
export const UNIFORM = 0x40
export const COPY_SRC = 0x4
export const COPY_DST = 0x8
export const MAP_READ = 0x1
export const MAP_WRITE = 0x2
export const QUERY_RESOLVE = 0x200

/** Every buffer of a device is made and destroyed here, so that leaks show as numbers and no failure is missed. */
export interface Ledger {
  /** A buffer at once; `error` tells whether there was room. Throws when the device is lost or disposed of. */
  create(label: string, bytes: number, usage: number): Watched<GPUBuffer>
  /** A buffer that there was room for. */
  make(label: string, bytes: number, usage: number): Promise<GPUBuffer>
  destroy(buffer: GPUBuffer): void
  destroyAll(): void
  readonly buffers: number
}

export function ledger(gpu: GPUDevice, faults: Faults): Ledger {
  const live = new Set<GPUBuffer>()
  const ledger: Ledger = {
    create(label, bytes, usage) {
      const size = Math.max(16, Math.ceil(bytes / 16) * 16)
      const made = faults.watch(`allocate ${label}, ${size} bytes`, () => gpu.createBuffer({ label, size, usage }))
      live.add(made.result)
      return made
    },
    async make(label, bytes, usage) {
      const { result, error } = ledger.create(label, bytes, usage)
      try {
        const failure = await faults.during(error)
        if (failure) throw failure
        return result
      } catch (error) {
        ledger.destroy(result)
        throw error
      }
    },
    destroy(buffer) {
      if (live.delete(buffer)) buffer.destroy()
    },
    destroyAll() {
      for (const buffer of live) buffer.destroy()
      live.clear()
    },
    get buffers() {
      return live.size
    },
  }
  return ledger
}

/** The buffers that values of all programs of a device share: one run has them at a time. They only grow. */
export interface SlotPool {
  /** Makes room for a run. Where there is none, lets go of what it made: the next run asks for what it needs. */
  reserve(slots: readonly SlotSize[], capacity: number): Promise<void>
  buffer(slot: number): GPUBuffer
  clear(): void
  /** Changes when a buffer was replaced: bind groups made before are stale. */
  readonly generation: number
  readonly bytes: number
}

export function slotPool(memory: Ledger): SlotPool {
  const buffers = new Map<number, GPUBuffer>()
  let generation = 0
  const drop = (slot: number): void => {
    const old = buffers.get(slot)
    if (old) memory.destroy(old)
    buffers.delete(slot)
  }
  return {
    async reserve(slots, capacity) {
      const sizes = slots.map((s) => slotBytes(s, capacity))
      const small = [...sizes.keys()].filter((i) => !((buffers.get(i)?.size ?? 0) >= sizes[i]!))
      if (small.length === 0) return
      generation++
      small.forEach(drop) // first, so that old and new need not fit together
      const made = await Promise.allSettled(
        small.map(async (i) => {
          buffers.set(
            i,
            await memory.make(`slot ${i} for ${capacity} tokens`, sizes[i]!, STORAGE | COPY_SRC | COPY_DST),
          )
        }),
      )
      const failed = made.find((m) => m.status === 'rejected')
      if (!failed) return
      small.forEach(drop)
      throw failed.reason
    },
    buffer: (slot) => buffers.get(slot)!,
    clear: () => buffers.clear(),
    get generation() {
      return generation
    },
    get bytes() {
      return [...buffers.values()].reduce((n, b) => n + b.size, 0)
    },
  }
}

/** Buffers that the GPU copies into and the host maps; handed out again once read. */
export interface Readback {
  /** Takes a buffer of at least these bytes. */
  take(bytes: number): Promise<GPUBuffer>
  /** Maps it, copies the bytes out and puts it back, whether somebody still waits for them or not. */
  read(buffer: GPUBuffer, bytes: number): Promise<ArrayBuffer>
  /** Puts it back unread. */
  give(buffer: GPUBuffer): void
}

export function readback(memory: Ledger): Readback {
  const idle: GPUBuffer[] = []
  const give = (buffer: GPUBuffer): void => {
    if (idle.push(buffer) > 8) memory.destroy(idle.shift()!)
  }
  return {
    async take(bytes) {
      const found = idle.findIndex((b) => b.size >= bytes && b.size <= 4 * Math.max(bytes, 4096))
      if (found >= 0) return idle.splice(found, 1)[0]!
      return memory.make('readback', Math.max(4096, 2 ** Math.ceil(Math.log2(bytes))), MAP_READ | COPY_DST)
    },
    async read(buffer, bytes) {
      const whole = Math.max(4, Math.ceil(bytes / 4) * 4)
      try {
        await buffer.mapAsync(MAP_READ, 0, whole)
        const data = buffer.getMappedRange(0, whole).slice(0, bytes)
        buffer.unmap()
        give(buffer)
        return data
      } catch (error) {
        memory.destroy(buffer)
        throw error
      }
    },
    give,
  }
}
