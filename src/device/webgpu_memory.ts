import type { SlotSize } from '../graph/plan.ts'
import { slotBytes } from '../graph/plan.ts'

export const STORAGE = 0x80
export const UNIFORM = 0x40
export const COPY_SRC = 0x4
export const COPY_DST = 0x8
export const MAP_READ = 0x1
export const QUERY_RESOLVE = 0x200

/** Every buffer of a device is made and destroyed here, so that leaks show as numbers. */
export interface Ledger {
  create(label: string, bytes: number, usage: number): GPUBuffer
  destroy(buffer: GPUBuffer): void
  destroyAll(): void
  readonly buffers: number
}

export function ledger(gpu: GPUDevice): Ledger {
  const live = new Set<GPUBuffer>()
  return {
    create(label, bytes, usage) {
      const buffer = gpu.createBuffer({ label, size: Math.max(16, Math.ceil(bytes / 16) * 16), usage })
      live.add(buffer)
      return buffer
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
}

/** The buffers that values of all programs of a device share: one run has them at a time. They only grow. */
export interface SlotPool {
  reserve(slots: readonly SlotSize[], capacity: number): void
  buffer(slot: number): GPUBuffer
  /** Changes when a buffer was replaced: bind groups made before are stale. */
  readonly generation: number
  readonly bytes: number
}

export function slotPool(memory: Ledger): SlotPool {
  const buffers: GPUBuffer[] = []
  let generation = 0
  return {
    reserve(slots, capacity) {
      slots.forEach((s, i) => {
        const bytes = slotBytes(s, capacity)
        const old = buffers[i]
        if (old && old.size >= bytes) return
        if (old) memory.destroy(old)
        buffers[i] = memory.create(`slot ${i}`, bytes, STORAGE | COPY_SRC | COPY_DST)
        generation++
      })
    },
    buffer: (slot) => buffers[slot]!,
    get generation() {
      return generation
    },
    get bytes() {
      return buffers.reduce((n, b) => n + b.size, 0)
    },
  }
}

/** Buffers that the GPU copies into and the host maps; handed out again once read. */
export interface Readback {
  /** Takes a buffer of at least these bytes. */
  take(bytes: number): GPUBuffer
  /** Maps it, copies the bytes out and puts it back. */
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
    take(bytes) {
      const found = idle.findIndex((b) => b.size >= bytes && b.size <= 4 * Math.max(bytes, 4096))
      if (found >= 0) return idle.splice(found, 1)[0]!
      return memory.create('readback', Math.max(4096, 2 ** Math.ceil(Math.log2(bytes))), MAP_READ | COPY_DST)
    },
    async read(buffer, bytes) {
      const whole = Math.ceil(bytes / 4) * 4
      await buffer.mapAsync(MAP_READ, 0, Math.max(whole, 4))
      const data = buffer.getMappedRange(0, Math.max(whole, 4)).slice(0, bytes)
      buffer.unmap()
      give(buffer)
      return data
    },
    give,
  }
}
