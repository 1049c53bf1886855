/** A permutation of the 32-bit integers: PCG-RXS-M-XS. */
export function hash(x: number): number {
  const state = (Math.imul(x, 747796405) + 2891336453) >>> 0
  const word = Math.imul((state >>> ((state >>> 28) + 4)) ^ state, 277803737) >>> 0
  return ((word >>> 22) ^ word) >>> 0
}
