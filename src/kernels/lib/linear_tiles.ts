import type { Constants, Kernel } from '../../graph/kernel.ts'
import type { LinearPlan, LinearRule, Target } from '../../graph/target.ts'
import type { Tensor } from '../../graph/tensor.ts'

/** A product y = x wᵀ as an op was asked for it. */
export interface Product {
  readonly target: Target
  readonly x: Tensor // [rows, IN]
  readonly w: Tensor // [OUT, IN]
  readonly add?: Tensor // [rows, OUT]
  readonly IN: number
  readonly OUT: number
  /** 2 for SwiGLU, where w = [gate; up] and y has OUT / 2 columns. */
  readonly HALVES: 1 | 2
  readonly format: 'f32' | 'f16' // of y
}

/** One algorithm. Tiles are a plan's `order` and the `tile` of one of its heights, together. */
export interface LinearVariant {
  /** Why this tile cannot run for this product on its target; undefined where it can. */
  misfit(p: Product, tile: Constants): string | undefined
  /** `plain` has the bindings and the twin; `finish` are the WGSL pieces of what happens to a sum. */
  kernel(p: Product, plain: Kernel, finish: readonly string[]): Kernel
  /** Rows and sums per row of a workgroup, columns that belong together (lib/columns.wgsl), and what is the shader's. */
  constants(p: Product, tile: Constants): Constants & Record<'BM' | 'BN' | 'BLOCK', number>
}

/** What of the table applies to a product, best first. */
export function classesOf({ target, x, w }: Product): LinearRule['on'][] {
  if (x.format !== 'f16' || w.format !== 'f16') return ['f32']
  return target.matrix ? ['matrix', 'f16'] : ['f16']
}

/** The rule whose N and K are nearest by ratio; of several as near the first. */
export function choose<Rule extends Pick<LinearRule, 'N' | 'K'>>(
  table: readonly Rule[],
  N: number,
  K: number,
): Rule | undefined {
  const distance = (r: Rule): number => Math.abs(Math.log(r.N / N)) + Math.abs(Math.log(r.K / K))
  return [...table].sort((a, b) => distance(a) - distance(b))[0] // sort is stable
}

type Order = LinearPlan['order']
type Heights = LinearPlan['heights']
const matrix = (N: number, K: number, order: Order, heights: Heights): LinearRule => {
  return { on: 'matrix', N, K, variant: 'linear_matrix', order, heights }
}
const tiled = (on: 'f16' | 'f32', N: number, K: number, order: Order, heights: Heights): LinearRule => {
  return { on, N, K, variant: 'linear_tiled', order, heights }
}

/** With units of 16 x 16: one tile for few rows, one for hundreds, one for thousands. */
const units = (BM: number, BN: number, many: Constants = { BM: 128, BN: 128, WM: 2, WN: 2 }): Heights => [
  { upTo: 32, tile: { BM: 32, BN: 64, WM: 2, WN: 2 } },
  { upTo: 512, tile: { BM, BN, WM: 2, WN: 2 } },
  { tile: many },
]
/** Subgroups side by side over all rows of the tile: the fastest of an H200 for wide products, and for deep ones in parts. */
const across: Heights = [
  { upTo: 32, tile: { BM: 32, BN: 64, WM: 2, WN: 2 } },
  { tile: { BM: 64, BN: 128, WM: 1, WN: 4 } },
]
/** For 64 terms, of which invocations of 4 subgroups could not carry enough; and with room to spill gate and up. */
const wide = { BM: 128, BN: 128, WM: 2, WN: 4 }
const tall = { BM: 128, BN: 64, WM: 4, WN: 2 }
/** With units of 8 x 8, whose tiles hold a quarter of the sums. */
const smallUnits: Heights = [
  { upTo: 32, tile: { BM: 32, BN: 64, WM: 2, WN: 2 } },
  { upTo: 512, tile: { BM: 64, BN: 64, WM: 2, WN: 2 } },
  { tile: { BM: 128, BN: 64, WM: 4, WN: 2 } },
]

/** Without: 8 x 8 sums per invocation as soon as `many` rows make enough workgroups. */
const threads = (many: number): Heights => [
  { upTo: 32, tile: { BM: 32, BN: 64, RM: 4, RN: 8 } },
  { upTo: many, tile: { BM: 64, BN: 64, RM: 4, RN: 8 } },
  { tile: { BM: 128, BN: 128, RM: 8, RN: 8 } },
]

/**
 * The middle tile and the split with matrix units are the fastest of an H200 at 256 rows of Qwen3.5's shapes. Of rules
 * as near the first that fits is taken: small units get what follows.
 */
export const linearTable: readonly LinearRule[] = [
  matrix(12288, 2048, { SK: 1, BK: 32 }, units(128, 64)),
  matrix(8192, 2048, { SK: 1, BK: 32 }, across),
  matrix(7168, 1024, { SK: 1, BK: 64 }, units(64, 64, tall)),
  matrix(2048, 6144, { SK: 4, BK: 32 }, across),
  matrix(2048, 2048, { SK: 4, BK: 32 }, across),
  matrix(1024, 3584, { SK: 4, BK: 64 }, units(64, 64, wide)),
  matrix(8192, 2048, { SK: 1, BK: 32 }, smallUnits),
  matrix(2048, 2048, { SK: 2, BK: 32 }, smallUnits),
  tiled('f16', 8192, 2048, { SK: 1, BK: 16, RUN: 8 }, threads(128)),
  tiled('f16', 2048, 4096, { SK: 2, BK: 16, RUN: 8 }, threads(512)),
  tiled('f32', 8192, 2048, { SK: 1, BK: 8, RUN: 0 }, threads(128)),
  tiled('f32', 2048, 4096, { SK: 2, BK: 8, RUN: 0 }, threads(512)),
]

/** At most 4 x 4 fragments of 16 x 16 per subgroup. Of 8 x 8 only the smaller ones are, with the last two for them. */
const matrixTiles = [
  { BM: 16, BN: 64, WM: 1, WN: 4 },
  { BM: 16, BN: 128, WM: 1, WN: 4 },
  { BM: 32, BN: 128, WM: 1, WN: 4 },
  { BM: 64, BN: 128, WM: 1, WN: 4 },
  { BM: 64, BN: 128, WM: 2, WN: 2 },
  { BM: 128, BN: 64, WM: 2, WN: 2 },
  { BM: 128, BN: 128, WM: 2, WN: 2 },
  { BM: 128, BN: 128, WM: 2, WN: 4 },
  { BM: 128, BN: 256, WM: 2, WN: 4 },
  { BM: 32, BN: 64, WM: 2, WN: 2 },
  { BM: 32, BN: 64, WM: 1, WN: 4 },
  { BM: 64, BN: 64, WM: 2, WN: 2 },
  { BM: 64, BN: 128, WM: 2, WN: 4 },
  { BM: 128, BN: 64, WM: 4, WN: 2 },
]

const threadTiles = [
  { BM: 16, BN: 64, RM: 4, RN: 4 },
  { BM: 32, BN: 64, RM: 4, RN: 8 },
  { BM: 64, BN: 64, RM: 4, RN: 8 },
  { BM: 64, BN: 64, RM: 8, RN: 8 },
  { BM: 64, BN: 128, RM: 4, RN: 8 },
  { BM: 64, BN: 128, RM: 8, RN: 8 },
  { BM: 128, BN: 64, RM: 8, RN: 4 },
  { BM: 128, BN: 128, RM: 8, RN: 8 },
]
const runs = [
  { BK: 8, RUN: 0 },
  { BK: 16, RUN: 0 },
  { BK: 8, RUN: 8 },
  { BK: 16, RUN: 4 },
  { BK: 16, RUN: 8 },
  { BK: 16, RUN: 16 },
  { BK: 32, RUN: 16 },
  { BK: 32, RUN: 32 },
]

/** What a sweep tries for a shape and a number of rows: all that `linearMisfit` has nothing against. */
export const linearCandidates: readonly LinearPlan[] = [1, 2, 4].flatMap((SK) => [
  ...[32, 64].flatMap((BK) =>
    matrixTiles.map((tile): LinearPlan => ({ variant: 'linear_matrix', order: { SK, BK }, heights: [{ tile }] })),
  ),
  ...runs.flatMap((run) =>
    threadTiles.map((tile): LinearPlan => ({ variant: 'linear_tiled', order: { SK, ...run }, heights: [{ tile }] })),
  ),
])
