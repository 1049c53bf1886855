import type { Constants, View } from '../../graph/kernel.ts'

/**
 * For twins of the delta rule: takes S [DK, DV] of every segment and value head from its state slot (0: zeros), hands
 * it to `advance` for the tokens [start, start + length), and puts it into the slot that continues it (0: dropped).
 */
export function advanceStates(
  segments: View,
  state: View,
  { NV, DK, DV }: Constants,
  S: number,
  advance: (state: Float32Array, start: number, length: number, head: number) => void,
): void {
  const size = DK! * DV!
  for (let s = 0; s < S; s++) {
    const [start, length, from, to] = segments.subarray(s * 8) as unknown as [number, number, number, number]
    for (let h = 0; h < NV!; h++) {
      const slot = (i: number): number => (i * NV! + h) * size
      const held = new Float32Array(size)
      if (from !== 0) held.set(state.subarray(slot(from), slot(from) + size))
      advance(held, start, length, h)
      if (to !== 0) state.set(held, slot(to))
    }
  }
}
