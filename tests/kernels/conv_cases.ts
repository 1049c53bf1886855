import type { View } from '../../src/graph/kernel.ts'
import type { Stored } from '../fixtures.ts'

// Weights and signals of PyTorch's layouts as conv1d reads them.

/** [C, L] to [L, C]. */
export function transposed({ shape: [C = 1, L = 1], data }: Stored): Float32Array {
  return Float32Array.from({ length: C * L }, (_, i) => data[(i % C) * L + Math.floor(i / C)]!)
}

/** [out, in, taps] to rows of out: tap after tap, zeros up to a multiple of 8. */
export function convRows(shape: readonly [number, number, number], data: View) {
  const [O, C, taps] = shape
  const IN = Math.ceil((taps * C) / 8) * 8
  const rows = new Float32Array(O * IN)
  for (let o = 0; o < O; o++)
    for (let c = 0; c < C; c++) for (let j = 0; j < taps; j++) rows[o * IN + j * C + c] = data[(o * C + c) * taps + j]!
  return { shape: [O, IN], data: rows }
}

/** [in, out, 2 s] to rows (p, out): the weights of tap p + s, then those of tap p. */
export function transposedRows(shape: readonly [number, number, number], data: View) {
  const [C, O, taps] = shape
  const s = taps / 2
  const IN = Math.ceil((2 * C) / 8) * 8
  const rows = new Float32Array(s * O * IN)
  for (let p = 0; p < s; p++)
    for (let o = 0; o < O; o++)
      for (let c = 0; c < C; c++) {
        const at = (p * O + o) * IN + c
        rows[at] = data[(c * O + o) * taps + p + s]!
        rows[at + C] = data[(c * O + o) * taps + p]!
      }
  return { shape: [s * O, IN], data: rows }
}
