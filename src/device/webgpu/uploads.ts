import { COPY_SRC, type Ledger, MAP_WRITE } from './memory.ts'

/** Below this, writeBuffer has room of its own; above, it would allocate and touch new memory each time. */
const LARGE = 2 ** 18
const MOST_IDLE = 4

/** Large writes pass through buffers that stay mapped between runs. One run at a time reserves and writes. */
export interface Uploads {
  /** Sees to it that writes of these sizes find a mapped buffer each. */
  reserve(sizes: readonly number[]): Promise<void>
  /** Writes data to the beginning of a buffer, before whatever is submitted next. */
  write(to: GPUBuffer, data: Uint8Array<ArrayBuffer>): void
}

export function uploads(gpu: GPUDevice, memory: Ledger): Uploads {
  const idle: GPUBuffer[] = [] // mapped

  function take(bytes: number): GPUBuffer | undefined {
    const found = idle.findIndex((b) => b.size >= bytes && b.size <= 4 * bytes)
    return found < 0 ? undefined : idle.splice(found, 1)[0]
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
    write(to, data) {
      const staging = data.byteLength >= LARGE && take(data.byteLength)
      if (!staging) {
        gpu.queue.writeBuffer(to, 0, data)
        return
      }
      new Uint8Array(staging.getMappedRange(0, data.byteLength)).set(data)
      staging.unmap()
      const encoder = gpu.createCommandEncoder()
      encoder.copyBufferToBuffer(staging, 0, to, 0, data.byteLength)
      gpu.queue.submit([encoder.finish()])
      void giveBack(staging)
    },
  }
}
