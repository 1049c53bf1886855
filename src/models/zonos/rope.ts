import { ROPE_THETA } from './config.ts'

/**
 * Rotary angles of tokens, [T, D]: per token the cosines of position · 10000^(-2i/D) for i < D/2, then their sines.
 * Rounded to f32 where the reference rounds: frequencies, then angles.
 */
export function ropeTable(positions: readonly number[], headDim: number): Float32Array {
  const half = headDim / 2
  const frequencies = Float32Array.from({ length: half }, (_, i) => 1 / Math.fround(ROPE_THETA ** ((2 * i) / headDim)))
  const table = new Float32Array(positions.length * headDim)
  positions.forEach((position, t) => {
    for (let i = 0; i < half; i++) {
      const angle = Math.fround(position * frequencies[i]!)
      table[t * headDim + i] = Math.cos(angle)
      table[t * headDim + half + i] = Math.sin(angle)
    }
  })
  return table
}
