import type { Device } from '../../device/device.ts'
import type { Memory } from './backbone.ts'
import { CODEBOOKS, type ZonosConfig } from './config.ts'

export interface SpeechMemory extends Memory {
  /** Makes room for a row of codes and starts it with this grid [W, 9]. Call between rows. */
  begin(grid: Uint32Array, kvRows: number): void
  readonly bytesPerKvRow: number
  dispose(): void
}

/** Pools grow by so many rows, so that a text a little longer than the last one moves nothing. */
const ROWS_AT_ONCE = 1024

export function makeMemory(device: Device, c: ZonosConfig): SpeechMemory {
  const width = 2 * c.kvHeads * c.headDim
  const { cache } = device.target
  const kv = Array.from({ length: c.layers }, (_, i) => device.keep(`layers.${i}.kv`, ['*', width], cache, 1))
  const grid = device.keep('grid', ['*', CODEBOOKS], 'u32', 1)
  const ended = device.keep('ended', [1], 'u32')
  return {
    kv,
    grid,
    ended,
    begin(columns, kvRows) {
      const rows = Math.ceil(kvRows / ROWS_AT_ONCE) * ROWS_AT_ONCE
      for (const pool of kv) device.grow(pool, rows)
      device.grow(grid, columns.length / CODEBOOKS + 1) // the run behind the last column has a place to write
      device.write(grid, new Uint8Array(columns.buffer, columns.byteOffset, columns.byteLength))
      device.write(ended, new Uint8Array(4))
    },
    bytesPerKvRow: c.layers * width * (cache === 'f16' ? 2 : 4),
    dispose() {
      for (const t of [...kv, grid, ended]) device.release(t)
    },
  }
}
