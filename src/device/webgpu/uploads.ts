import { type Fill, filled } from '../fill.ts'
import { COPY_SRC, type Ledger, MAP_WRITE } from './memory.ts'

/** Below this, writeBuffer has room of its own; above, it would allocate and touch new memory each time. */
const LARGE = 2 ** 18
const MOST_IDLE = 8 // so many inputs of several lengths of runs

/** Large writes pass through buffers that stay mapped between runs. One run at a time reserves and writes. */
export interface Uploads {
  /** Sees to it that writes of these sizes find a mapped buffer each. */
  reserve(sizes: readonly number[]): Promise<void>
  /** Writes data, of at least 4 bytes, to the beginning of a buffer, before what else the encoder is given. */
  write(encoder: GPUCommandEncoder, to: GPUBuffer, data: Uint8Array<ArrayBuffer> | Fill): void
  /** Call when the encoder's commands are submitted. */
  submitted(): void
}

export function uploads(gpu: GPUDevice, memory: Ledger): Uploads {
  const idle: GPUBuffer[] = [] // mapped
  const written: GPUBuffer[] = [] // to be read by the GPU

  /** The smallest that there is room in. */
  function take(bytes: number): GPUBuffer | undefined {
    const fitting = idle.filter(({ size }) => size >= bytes)
    const best = fitting.reduce<GPUBuffer | undefined>((a, b) => (a && a.size <= b.size ? a : b), undefined)
    if (best) idle.splice(idle.indexOf(best), 1)
    return best
  }

  async function make(bytes: number): Promise<GPUBuffer> {
    const buffer = await memory.make('upload', 2 ** Math.ceil(Math.log2(bytes)), MAP_WRITE | COPY_SRC)
    try {
      await buffer.mapAsync(MAP_WRITE)
      return buffer
    } catch (error) {
      memory.destroy(buffer)
      throw error
    }
  }

  /** Maps it again as soon as the GPU has read it. */
  async function giveBack(buffer: GPUBuffer): Promise<void> {
    try {
      await buffer.mapAsync(MAP_WRITE)
      if (idle.push(buffer) > MOST_IDLE) memory.destroy(idle.shift()!)
    } catch {
      memory.destroy(buffer) // the device went away
    }
  }

  return {
    async reserve(sizes) {
      const taken: GPUBuffer[] = []
      try {
        for (const bytes of sizes.filter((n) => n >= LARGE)) taken.push(take(bytes) ?? (await make(bytes)))
      } finally {
        idle.push(...taken)
      }
    },
    write(encoder, to, data) {
      const length = Math.ceil(data.byteLength / 4) * 4
      const staging = length >= LARGE && take(length)
      if (!staging) {
        gpu.queue.writeBuffer(to, 0, ArrayBuffer.isView(data) ? data : filled(data, length))
        return
      }
      const room = new Uint8Array(staging.getMappedRange(0, length))
      if (ArrayBuffer.isView(data)) room.set(data)
      else data.fill(room)
      staging.unmap()
      encoder.copyBufferToBuffer(staging, 0, to, 0, length)
      written.push(staging)
    },
    submitted() {
      for (const buffer of written.splice(0)) void giveBack(buffer)
    },
  }
}
