import type { Device } from '../../device/device.ts'
import type { Tensor } from '../../graph/tensor.ts'
import type { TextConfig } from './config.ts'

/** What a layer remembers between runs: state slots of a linear layer, cache rows of a full one. */
export type LayerPool =
  | { readonly kind: 'linear'; readonly conv: Tensor; readonly state: Tensor }
  | { readonly kind: 'full'; readonly kv: Tensor }

export interface Pools {
  readonly layers: readonly LayerPool[]
  /** Makes room for `slots` state slots (slot 0, the zeros, counted in) and `rows` cache rows. Call between runs. */
  reserve(slots: number, rows: number): void
  readonly bytesPerSlot: number
  readonly bytesPerRow: number
  dispose(): void
}

export function makePools(device: Device, c: TextConfig): Pools {
  const { keyHeads, valueHeads, keyWidth, valueWidth, kernel } = c.delta
  const channels = 2 * keyHeads * keyWidth + valueHeads * valueWidth
  const kvWidth = 2 * c.attention.kvHeads * c.attention.headDim
  const layers = c.layers.map((kind, i): LayerPool => {
    if (kind === 'full') return { kind, kv: device.keep(`layers.${i}.kv`, ['*', kvWidth], device.target.cache, 1) }
    return {
      kind,
      conv: device.keep(`layers.${i}.conv`, ['*', kernel - 1, channels], 'f32', 1),
      state: device.keep(`layers.${i}.state`, ['*', valueHeads, keyWidth, valueWidth], 'f32', 1),
    }
  })
  const linear = c.layers.filter((kind) => kind === 'linear').length
  const stateBytes = 4 * ((kernel - 1) * channels + valueHeads * keyWidth * valueWidth)
  const rowBytes = (device.target.cache === 'f16' ? 2 : 4) * kvWidth
  return {
    layers,
    reserve(slots, rows) {
      for (const layer of layers) {
        if (layer.kind === 'full') device.grow(layer.kv, rows)
        else for (const pool of [layer.conv, layer.state]) device.grow(pool, slots)
      }
    },
    bytesPerSlot: linear * stateBytes,
    bytesPerRow: (layers.length - linear) * rowBytes,
    dispose() {
      for (const layer of layers) {
        if (layer.kind === 'full') device.release(layer.kv)
        else for (const pool of [layer.conv, layer.state]) device.release(pool)
      }
    },
  }
}
