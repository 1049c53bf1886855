import type { Constants, Kernel } from '../../graph/kernel.ts'
import type { LinearPlan, LinearRule, Target } from '../../graph/target.ts'
import type { Tensor } from '../../graph/tensor.ts'

/** The layer norm of x stands for x: w [2, IN] f32, weight and bias. */
export interface Norm {
  readonly w: Tensor
  readonly eps: number
}

/** What happens to a sum: `LinearOptions.finish`. */
export type Finish = 'store' | 'swiglu' | 'swiglu_up_first' | 'gelu' | 'gelu_tanh'

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
  readonly finish: Finish
  /** 2 for SwiGLU, where w = [gate; up] or [up; gate] and y has OUT / 2 columns. */
  readonly HALVES: 1 | 2
  /** Are there one or two rows only? */
  readonly few: boolean
  /** Are they a handful of a run's rows, for their logits? */
  readonly readOut: boolean
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

/** Stretches of K whose sums a workgroup adds itself, side by side: SL of a tile. */
export const slicesIn = ({ SL = 1 }: Constants): number => SL

/** Parts that a plan with one tile leaves to whoever reads them. */
export const partsIn = ({ order, heights: [height] }: LinearPlan): number => order.SK / slicesIn(height!.tile)

/** The plan with SK parts at every height. */
export const splitInto = ({ variant, order, heights }: LinearPlan, SK: number): LinearPlan => ({
  variant,
  order: { ...order, SK },
  heights: heights.map((height) => ({ ...height, tile: { ...height.tile, SL: 1 } })),
})

/** The plan for a product whose parts nobody adds. */
export const wholePlan = (plan: LinearPlan): LinearPlan =>
  plan.heights.every(({ tile }) => slicesIn(tile) === plan.order.SK) ? plan : splitInto(plan, 1)

/** Why a tile's slices do not make up parts of the sum; undefined where they do. */
export function slicesMisfit({ IN }: Product, variant: LinearPlan['variant'], tile: Constants): string | undefined {
  const { SK = 1, BK = 1, SL = 1 } = tile
  if (SL === 1) return undefined
  if (variant !== 'linear_matrix') return `${variant} has no slices`
  if (![2, 4].includes(SL) || SK % SL !== 0)
    return `${SL} slices of a sum in ${SK} parts, expected 1, 2 or 4 that divide them`
  if (IN % (SK * BK) !== 0) return `${IN} columns of x in ${SK} parts, expected whole tiles of ${BK} in each`
  return undefined
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
const units = (hundreds: Constants, SL = 1): Heights => [
  { upTo: 32, tile: { BM: 32, BN: 64, WM: 2, WN: 2, SL } },
  { upTo: 64, tile: { BM: 64, BN: 64, WM: 2, WN: 2, SL } },
  { upTo: 512, tile: { ...hundreds, SL } },
  { tile: { BK: 32, BM: 128, BN: 128, WM: 2, WN: 2, SL } },
]
const small = { BM: 64, BN: 64, WM: 2, WN: 2 }
const large = { BM: 128, BN: 128, WM: 2, WN: 4 }
/**
 * 256 rows by 128 and 12288 columns by 192, or by 64 and 5120 by 160, make a workgroup for nearly each of an H200's 132
 * multiprocessors.
 */
const broad = { BM: 128, BN: 192, WM: 4, WN: 3 }
const long = { BM: 64, BN: 160, WM: 2, WN: 5 }
/** With units of 8 x 8, whose tiles hold a quarter of the sums. */
const smallUnits: Heights = [
  { upTo: 32, tile: { BM: 32, BN: 64, WM: 2, WN: 2 } },
  { upTo: 512, tile: { BM: 64, BN: 64, WM: 2, WN: 2 } },
  { tile: { BM: 128, BN: 64, WM: 4, WN: 2 } },
]

/** Without: two subgroups wait for each other at little cost, and 8 x 8 sums of an invocation read least for a sum. */
const few = { upTo: 32, tile: { BM: 32, BN: 64, RM: 4, RN: 8, MORTON: 0 } }
const square = { BM: 64, BN: 64, RM: 8, RN: 8, MORTON: 0 }
const high = { BM: 128, BN: 64, RM: 8, RN: 8, MORTON: 1 }
/** Where columns make few workgroups: more invocations in each. */
const dense = { BM: 64, BN: 64, RM: 8, RN: 4, MORTON: 1 }
const halves: Heights = [few, { upTo: 192, tile: square }, { tile: high }]

/**
 * With units of 16 x 16 the fastest of an H200 at Qwen3.5's shapes; how sums are cut is a compromise between 64 rows and
 * 4096. Of rules as near the first that fits is taken: small units get what follows.
 */
export const linearTable: readonly LinearRule[] = [
  matrix(12288, 2048, { SK: 1, BK: 64 }, units(broad)),
  matrix(8192, 2048, { SK: 1, BK: 64 }, units(large)),
  matrix(7168, 1024, { SK: 1, BK: 64 }, units(large)),
  matrix(5120, 2048, { SK: 1, BK: 64 }, units(long)),
  matrix(5120, 1024, { SK: 1, BK: 64 }, units(long)),
  matrix(2048, 6144, { SK: 4, BK: 64 }, units(large)),
  matrix(2048, 2048, { SK: 2, BK: 64 }, units(small)),
  matrix(1024, 3584, { SK: 4, BK: 64 }, units(small, 2)),
  matrix(3072, 1024, { SK: 1, BK: 64 }, units(small)), // and these of its vision towers, of 256 patches
  matrix(1024, 1024, { SK: 2, BK: 64 }, units(small)),
  matrix(1024, 4096, { SK: 4, BK: 64 }, units(small)),
  matrix(768, 3072, { SK: 4, BK: 64 }, units(small)),
  matrix(8192, 2048, { SK: 1, BK: 32 }, smallUnits),
  matrix(2048, 2048, { SK: 2, BK: 32 }, smallUnits),
  tiled('f16', 8192, 2048, { SK: 1, BK: 16 }, halves),
  tiled('f16', 5120, 2048, { SK: 1, BK: 16 }, [few, { upTo: 512, tile: dense }, { tile: high }]),
  tiled('f16', 2048, 4096, { SK: 4, BK: 16 }, halves),
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
  { BM: 64, BN: 160, WM: 2, WN: 5 },
  { BM: 128, BN: 192, WM: 2, WN: 6 },
  { BM: 128, BN: 192, WM: 4, WN: 3 },
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
    matrixTiles.flatMap((tile) =>
      [1, 2]
        .filter((SL) => SL <= SK)
        .map(
          (SL): LinearPlan => ({ variant: 'linear_matrix', order: { SK, BK }, heights: [{ tile: { ...tile, SL } }] }),
        ),
    ),
  ),
  ...threadTiles.map((tile): LinearPlan => ({ variant: 'linear_tiled', order: { SK, BK: 16 }, heights: [{ tile }] })),
])
