import frameStruct from '../../shaders/lib/frame.wgsl' with { type: 'text' }
import hashing from '../../shaders/lib/hash.wgsl' with { type: 'text' }
import lanesAlone from '../../shaders/lib/lanes_alone.wgsl' with { type: 'text' }
import lanesShared from '../../shaders/lib/lanes_shared.wgsl' with { type: 'text' }
import step from '../../shaders/lib/step.wgsl' with { type: 'text' }
import sumAlone from '../../shaders/lib/sum_alone.wgsl' with { type: 'text' }
import sumShared from '../../shaders/lib/sum_shared.wgsl' with { type: 'text' }
import source from '../../shaders/sample_codes.wgsl' with { type: 'text' }
import { graphOf, record } from '../graph/graph.ts'
import type { Constants, Kernel, View, Views } from '../graph/kernel.ts'
import { expectFormat, expectShape, last, type Tensor } from '../graph/tensor.ts'
import { hash } from './lib/hash.ts'
import { type BothSummings, pickSumming, type Summing } from './lib/slices.ts'

/** What a run makes: fields of the u32 input `frame`, in order (lib/frame.wgsl). */
export interface Frame {
  /** Of the delayed grid. */
  readonly column: number
  /** Codebook 0 may not say EOS in earlier columns. */
  readonly endFrom: number
  /** May the other codebooks say EOS? */
  readonly othersEnd: boolean
  /** Does EOS in codebook 0 end the row? */
  readonly ends: boolean
  readonly seed: number
  /** Frames that were given, and new ones at most. */
  readonly before: number
  readonly wanted: number
  /** Unknown cells of a column take the codes in turn, instead of each its own codebook's. */
  readonly shifted: boolean
}

export const frameShape = [8] as const
export const frameInput = (f: Frame): Uint32Array =>
  Uint32Array.of(f.column, f.endFrom, +f.othersEnd, +f.ends, f.seed, f.before, f.wanted, +f.shifted)

/** How a code is drawn: fields of the f32 input `sampling`, in order. 0 switches linear, topP, topK and minP off. */
export interface Sampling {
  /** Weight of the conditional row against the unconditional one, where there are two. */
  readonly guidance: number
  /** 0: the most probable code. */
  readonly temperature: number
  /** Unified sampler: slope, its change per nat of entropy, and curvature over log probabilities. */
  readonly linear: number
  readonly confidence: number
  readonly quadratic: number
  readonly topP: number
  readonly topK: number
  readonly minP: number
  /** Divides a positive logit, and multiplies a negative one, each time its code is in the last `window` columns. */
  readonly penalty: number
  readonly window: number
}

export const samplingShape = [10] as const
export const samplingInput = (s: Sampling): Float32Array =>
  Float32Array.of(
    ...[s.guidance, s.temperature, s.linear, s.confidence, s.quadratic],
    ...[s.topP, s.topK, s.minP, s.penalty, s.window],
  )

/** The logit of a code that may not be said, as in the shader. */
const LOWEST = -1e30

/** What stands for a code where no logit was a number. */
export const UNKNOWN = 2047

/**
 * Draws a code from each codebook: Zonos' sampler (zonos.md 5.3, 5.4), with Gumbel-max over counted random numbers, so
 * that a seed and a column give the same codes whenever they are asked for.
 *
 * logits ['R', BOOKS · CODES] f32: one row, or the conditional and the unconditional one; the last code of a book is
 * EOS. grid ['*', BOOKS] u32: the columns so far. Returns drawn [BOOKS] u32, and scores [2, BOOKS, CODES] f32:
 * probabilities before and after top-p, top-k and min-p (at temperature 0, scores[1] are the penalised logits).
 */
export function sampleCodes(
  logits: Tensor,
  grid: Tensor,
  { frame, sampling }: { readonly frame: Tensor; readonly sampling: Tensor },
  { summing }: { readonly summing?: Summing } = {},
): { readonly drawn: Tensor; readonly scores: Tensor } {
  const op = 'sample_codes'
  const BOOKS = last(grid)
  const CODES = last(logits) / BOOKS
  expectFormat(op, 'logits', logits, 'f32')
  expectFormat(op, 'grid', grid, 'u32')
  expectFormat(op, 'frame', frame, 'u32')
  expectFormat(op, 'sampling', sampling, 'f32')
  expectShape(op, 'logits', logits, [logits.shape[0]!, BOOKS * Math.floor(CODES)])
  expectShape(op, 'grid', grid, ['*', BOOKS])
  expectShape(op, 'frame', frame, frameShape)
  expectShape(op, 'sampling', sampling, samplingShape)
  const form = summing ?? pickSumming(graphOf(op, { logits, frame }).target, kernels)
  const lanes = form === 'alone' ? 1 : WORKGROUP
  return record<'drawn' | 'scores'>(kernels[form], {
    reads: { logits, grid, frame, sampling },
    writes: { scores: { shape: [2, BOOKS, CODES] }, drawn: { shape: [BOOKS], format: 'u32' } },
    constants: { BOOKS, CODES, EOS: CODES - 1, UNKNOWN, WORKGROUP: lanes, SLICES: lanes },
    workgroups: [BOOKS, 1, 1],
  })
}

const WORKGROUP = 256 // of the shared form; to sweep: 128, 256

const common = (name: string, ...lanes: string[]): Kernel => ({
  name,
  reads: ['logits', 'grid', 'frame', 'sampling'],
  writes: ['scores', 'drawn'],
  shader: [step, hashing, frameStruct, ...lanes, source],
  cost: ({ BOOKS, CODES }, { R }) => ({ flops: 60 * BOOKS! * CODES!, bytes: 4 * BOOKS! * CODES! * (R + 10) }),
  cpu(views, constants, { R }) {
    for (let k = 0; k < constants.BOOKS!; k++) sampleBook(views, constants, R, k)
  },
})

const kernels: BothSummings = {
  alone: common('sample_codes', sumAlone, lanesAlone),
  shared: { ...common('sample_codes_shared', sumShared, lanesShared), optional: true },
}

function sampleBook({ logits, grid, frame, sampling, scores, drawn }: Views, c: Constants, rows: number, k: number) {
  const { BOOKS, CODES, EOS } = c as Record<'BOOKS' | 'CODES' | 'EOS', number>
  const [column, endFrom, othersEnd, , seed] = frame as unknown as number[]
  const [guidance, temperature, linear, confidence, quadratic, topP, topK, minP, penalty, window] =
    sampling as unknown as number[]
  const own = scores!.subarray(k * CODES, (k + 1) * CODES)
  const filtered = scores!.subarray((BOOKS + k) * CODES, (BOOKS + k + 1) * CODES)
  const eosBanned = k === 0 ? column! < endFrom! : othersEnd === 0

  const factor = new Float64Array(CODES).fill(1)
  for (let n = 1; n <= Math.min(window!, column!); n++) {
    const code = grid![(column! - n) * BOOKS + k]!
    if (code < CODES) factor[code]! *= penalty!
  }
  const l = Float64Array.from(factor, (f, i) => {
    const conditional = logits![k * CODES + i]!
    const unconditional = rows > 1 ? logits![(BOOKS + k) * CODES + i]! : 0
    const mixed = rows > 1 ? unconditional + (conditional - unconditional) * guidance! : conditional
    return mixed <= 0 ? mixed * f : mixed / f
  })
  if (eosBanned) l[EOS] = LOWEST
  if (temperature === 0) {
    filtered.set(l)
    drawn![k] = best(l)
    return
  }

  let p = softmax(l.map((v) => v / temperature!))
  if (linear! > 0) {
    const lp = p.map((v) => Math.log(Math.max(v, 1e-20)))
    const entropy = -p.reduce((sum, v, i) => sum + v * lp[i]!, 0)
    const s = lp.map((v) => v * (linear! + entropy * confidence!) - v * v * quadratic!)
    if (eosBanned) s[EOS] = LOWEST
    p = softmax(s)
  }
  own.set(p)
  const most = p.reduce((a, b) => Math.max(a, b))
  const least = Math.max(minP! * most, topP! > 0 ? leastOfTopP(p, topP!) : 0, topK! > 0 ? leastOfTopK(p, topK!) : 0)
  p = p.map((v) => (v >= least ? v : 0))
  const sum = p.reduce((a, b) => a + b)
  p = p.map((v) => v / sum)
  filtered.set(p)
  const start = hash((hash(seed!) + column!) >>> 0)
  drawn![k] = best(p.map((v, i) => (v > 0 ? v / exponential(hash((start + k * CODES + i) >>> 0)) : 0)))
}

/** The least probability that top-p keeps: those that more probable ones, together at most `topP`, come before. */
function leastOfTopP(p: Float64Array, topP: number): number {
  const sorted = p.slice().sort().reverse()
  let before = 0
  let least = sorted[0]!
  for (const v of sorted) {
    if (before > topP) break
    least = v
    before += v
  }
  return least
}

const leastOfTopK = (p: Float64Array, topK: number): number => p.slice().sort().at(-Math.min(topK, p.length))!

function softmax(x: Float64Array): Float64Array {
  const top = x.reduce((a, b) => Math.max(a, b))
  const e = x.map((v) => Math.exp(v - top))
  const sum = e.reduce((a, b) => a + b)
  return e.map((v) => v / sum)
}

/** The index of the greatest score, of equal ones the first; UNKNOWN where none is a number. */
function best(x: View | Float64Array): number {
  let found = UNKNOWN
  for (let i = 0; i < x.length; i++) if (x[i]! > (x[found] ?? Number.NEGATIVE_INFINITY)) found = i
  return found
}

/** -ln u for u in (0, 1) made of 23 bits. */
const exponential = (bits: number): number => -Math.log(((bits >>> 9) + 0.5) / 2 ** 23)
