import type { Constants, Kernel } from '../../graph/kernel.ts'
import type { LinearPlan, LinearRule, Target } from '../../graph/target.ts'
import type { Tensor } from '../../graph/tensor.ts'

/** The layer norm of x stands for x: w [2, IN] f32, weight and bias. */
export interface Norm {
  readonly w: Tensor
  readonly eps: number
}

/** A product y = x wᵀ as an op was asked for it. Of a convolution the rows of x wᵀ are windows of x. */
export interface Product {
  readonly target: Target
  readonly x: Tensor // [rows, IN]
  readonly w: Tensor // [OUT, IN]
  readonly add?: Tensor // [rows, OUT]
  readonly bias?: Tensor // [OUT]
  readonly norm?: Norm
  readonly IN: number
  /** Of x, where its windows are multiplied and not its rows: src/kernels/conv1d.ts. */
  readonly channels?: number
  readonly OUT: number
  readonly finish: 'store' | 'swiglu' | 'swiglu_up_first'
  /** 2 for SwiGLU, where w = [gate; up] or [up; gate] and y has OUT / 2 columns. */
  readonly HALVES: 1 | 2
  /** Are there one or two rows only? */
  readonly few: boolean
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

/**
 * With units of 16 x 16: tiles for tens of rows, for hundreds and for thousands. Fragments add up 16 terms after another
 * whatever BK is, so that it is a tile's own.
 */
const units = (hundreds: Constants): Heights => [
  { upTo: 32, tile: { BM: 32, BN: 64, WM: 2, WN: 2 } },
  { upTo: 64, tile: { BM: 64, BN: 64, WM: 2, WN: 2 } },
  { upTo: 512, tile: hundreds },
  { tile: { BK: 32, BM: 128, BN: 128, WM: 2, WN: 2 } },
]
const small = units({ BM: 64, BN: 64, WM: 2, WN: 2 })
const large = units({ BM: 128, BN: 128, WM: 2, WN: 4 })
/** 12288 columns by 192 and 256 rows by 128 make a workgroup for nearly each of an H200's 132 multiprocessors. */
const broad = units({ BM: 128, BN: 192, WM: 2, WN: 6 })
/** With units of 8 x 8, whose tiles hold a quarter of the sums. */
const smallUnits: Heights = [
  { upTo: 32, tile: { BM: 32, BN: 64, WM: 2, WN: 2 } },
  { upTo: 512, tile: { BM: 64, BN: 64, WM: 2, WN: 2 } },
  { tile: { BM: 128, BN: 64, WM: 4, WN: 2 } },
]

/** Without: two subgroups wait for each other at little cost, and 8 x 8 sums of an invocation read least for a sum. */
const few = { upTo: 32, tile: { BM: 32, BN: 64, RM: 4, RN: 8, MORTON: 0 } }
const square = { BM: 64, BN: 64, RM: 8, RN: 8, MORTON: 0 }
/** Where columns make enough workgroups of it. */
const high = { BM: 128, BN: 64, RM: 8, RN: 8, MORTON: 1 }

/**
 * With units of 16 x 16 the fastest of an H200 at Qwen3.5's shapes, the split as a compromise between 228 rows and 4096.
 * Of rules as near the first that fits is taken: small units get what follows.
 */
export const linearTable: readonly LinearRule[] = [
  matrix(12288, 2048, { SK: 1, BK: 64 }, broad),
  matrix(8192, 2048, { SK: 1, BK: 64 }, large),
  matrix(7168, 1024, { SK: 1, BK: 64 }, large),
  matrix(2048, 6144, { SK: 4, BK: 64 }, large),
  matrix(2048, 2048, { SK: 2, BK: 64 }, small),
  matrix(1024, 3584, { SK: 2, BK: 64 }, small),
  matrix(8192, 2048, { SK: 1, BK: 32 }, smallUnits),
  matrix(2048, 2048, { SK: 2, BK: 32 }, smallUnits),
  tiled('f16', 12288, 2048, { SK: 1, BK: 16 }, [few, { upTo: 192, tile: square }, { tile: high }]),
  tiled('f16', 8192, 2048, { SK: 1, BK: 16 }, [few, { upTo: 512, tile: square }, { tile: high }]),
  tiled('f16', 2048, 4096, { SK: 4, BK: 16 }, [few, { tile: square }]),
  tiled('f32', 8192, 2048, { SK: 1, BK: 16 }, [few, { tile: { ...square, MORTON: 1 } }]),
  tiled('f32', 2048, 4096, { SK: 4, BK: 16 }, [few, { tile: { ...square, MORTON: 1 } }]),
]

/** At most 4 x 4 fragments of 16 x 16 per subgroup. Of 8 x 8 only the smaller ones are. */
const matrixTiles = [
  { BM: 16, BN: 64, WM: 1, WN: 4 },
  { BM: 32, BN: 64, WM: 2, WN: 2 },
  { BM: 32, BN: 128, WM: 2, WN: 4 },
  { BM: 64, BN: 64, WM: 2, WN: 2 },
  { BM: 64, BN: 128, WM: 1, WN: 4 },
  { BM: 64, BN: 128, WM: 2, WN: 4 },
  { BM: 128, BN: 64, WM: 4, WN: 2 },
  { BM: 128, BN: 128, WM: 2, WN: 2 },
  { BM: 128, BN: 128, WM: 2, WN: 4 },
  { BM: 128, BN: 192, WM: 2, WN: 6 },
  { BM: 256, BN: 128, WM: 4, WN: 2 },
]

const threadTiles = [0, 1].flatMap((MORTON) => [
  { BM: 32, BN: 64, RM: 4, RN: 8, MORTON },
  { BM: 32, BN: 128, RM: 4, RN: 8, MORTON },
  { BM: 64, BN: 64, RM: 8, RN: 4, MORTON },
  { BM: 64, BN: 64, RM: 8, RN: 8, MORTON },
  { BM: 64, BN: 128, RM: 8, RN: 4, MORTON },
  { BM: 64, BN: 128, RM: 8, RN: 8, MORTON },
  { BM: 128, BN: 64, RM: 8, RN: 8, MORTON },
  { BM: 128, BN: 128, RM: 8, RN: 8, MORTON },
])

/** What a sweep tries for a shape and a number of rows: all that `linearMisfit` has nothing against. */
export const linearCandidates: readonly LinearPlan[] = [1, 2, 4, 8].flatMap((SK) => [
  ...[32, 64].flatMap((BK) =>
    matrixTiles.map((tile): LinearPlan => ({ variant: 'linear_matrix', order: { SK, BK }, heights: [{ tile }] })),
  ),
  ...threadTiles.map((tile): LinearPlan => ({ variant: 'linear_tiled', order: { SK, BK: 16 }, heights: [{ tile }] })),
])
