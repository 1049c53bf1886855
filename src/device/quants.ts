import { f16ToF32, f32ToF16 } from './halves.ts'

/** Weights that share a scale. */
export const GROUP = 32

/** Signed bytes and the f16 scales of every 32: weight = byte · scale. The greatest weight of a group is ±127. */
export interface Quants {
  readonly quants: Int8Array
  readonly scales: Uint16Array
}

/** Rounds weights, a multiple of 32, to their group's 255 steps. */
export function quantize(weights: Float32Array): Quants {
  const quants = new Int8Array(weights.length)
  const scales = new Uint16Array(weights.length / GROUP)
  for (let group = 0; group < scales.length; group++) {
    const begin = group * GROUP
    let most = 0
    for (let i = begin; i < begin + GROUP; i++) most = Math.max(most, Math.abs(weights[i]!))
    scales[group] = f32ToF16(most / 127)
    const scale = f16ToF32(scales[group]!)
    if (scale === 0) continue
    for (let i = begin; i < begin + GROUP; i++)
      quants[i] = Math.max(-127, Math.min(127, Math.round(weights[i]! / scale)))
  }
  return { quants, scales }
}

/** The bytes of a whole q8 tensor: its quants, then its scales, padded to a multiple of 4. */
export function quantized(weights: Float32Array): Uint8Array {
  const { quants, scales } = quantize(weights)
  const bytes = new Uint8Array(Math.ceil((quants.length + 2 * scales.length) / 4) * 4)
  bytes.set(new Uint8Array(quants.buffer))
  bytes.set(new Uint8Array(scales.buffer), quants.length)
  return bytes
}

/** The weights that a whole q8 tensor stands for. */
export function dequantized(bytes: Uint8Array): Float32Array {
  const groups = Math.floor(bytes.length / (GROUP + 2))
  const weights = new Float32Array(groups * GROUP)
  for (let group = 0, at = groups * GROUP; group < groups; group++, at += 2) {
    const scale = f16ToF32(bytes[at]! | (bytes[at + 1]! << 8))
    const end = (group + 1) * GROUP
    for (let i = group * GROUP; i < end; i++) weights[i] = ((bytes[i]! << 24) >> 24) * scale
  }
  return weights
}
