import type { Shape } from '../../graph/tensor.ts'

/** One of several ways to do the same, by the rows of a run: up to so many, from where the one before it ends. */
export interface Height {
  readonly upTo?: number
}

/** Those of ascending heights that a value of this shape may have, each with the rows that it serves. */
export function heightsOf<H extends Height>(
  [rows = 1]: Shape,
  heights: readonly H[],
): { readonly height: H; serves(rows: number): boolean }[] {
  const all = heights.map((height, i) => {
    const above = heights[i - 1]?.upTo ?? 0
    return { height, serves: (n: number) => n > above && n <= (height.upTo ?? Number.POSITIVE_INFINITY) }
  })
  return typeof rows === 'number' ? all.filter(({ serves }) => serves(rows)) : all
}
