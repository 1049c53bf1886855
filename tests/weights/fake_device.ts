import { expect } from 'vitest'
import { DeviceError } from '../../src/errors.ts'
import { type Format, type Tensor, tensor } from '../../src/graph/tensor.ts'
import type { StoredFormat } from '../../src/weights/convert.ts'
import type { WeightDevice } from '../../src/weights/load.ts'

const widths: Record<Format, number> = { f32: 4, f16: 2, bf16: 2, q8: 34 / 32, u32: 4 }

/** Holds what is written, and refuses what a device would refuse. */
export class FakeDevice implements WeightDevice {
  readonly memory = new Map<Tensor, Uint8Array>()
  readonly released: Tensor[] = []
  flushes = 0
  unflushed = 0
  mostUnflushed = 0
  largestWrite = 0
  keep(label: string, shape: Tensor['shape'], format: Format): Tensor {
    const kept = tensor({ label, shape, format, place: 'kept' })
    const bytes = shape.reduce<number>((n, d) => n * (d as number), widths[format])
    this.memory.set(kept, new Uint8Array(Math.ceil(bytes / 4) * 4))
    return kept
  }
  write(t: Tensor, data: Uint8Array, byteOffset = 0): void {
    if (data.length % 4 !== 0 || byteOffset % 4 !== 0) throw new DeviceError('validation', 'write: not a multiple of 4')
    this.memory.get(t)!.set(data, byteOffset)
    this.unflushed += data.length
    this.mostUnflushed = Math.max(this.mostUnflushed, this.unflushed)
    this.largestWrite = Math.max(this.largestWrite, data.length)
  }
  async flush(): Promise<void> {
    this.flushes++
    this.unflushed = 0
  }
  release(t: Tensor): void {
    this.released.push(t)
    this.memory.delete(t)
  }
  f32(t: Tensor): number[] {
    expect(t.format).toBe('f32')
    return Array.from(new Float32Array(this.memory.get(t)!.slice().buffer))
  }
  u16(t: Tensor): number[] {
    return Array.from(new Uint16Array(this.memory.get(t)!.slice().buffer))
  }
}

/** Formats of a load: as stored, or f16. */
export const same = { format: (stored: StoredFormat): Format => stored }
export const f16 = { format: (): Format => 'f16' }
