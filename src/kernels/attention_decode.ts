import source from '../../shaders/attention_decode.wgsl' with { type: 'text' }
import eight from '../../shaders/lib/eight.wgsl' with { type: 'text' }
import keys from '../../shaders/lib/keys.wgsl' with { type: 'text' }
import rotary from '../../shaders/lib/rotary.wgsl' with { type: 'text' }
import segment from '../../shaders/lib/segment.wgsl' with { type: 'text' }
import step from '../../shaders/lib/step.wgsl' with { type: 'text' }
import { ShapeError } from '../errors.ts'
import { graphOf, record } from '../graph/graph.ts'
import type { Kernel, View } from '../graph/kernel.ts'
import type { Limits } from '../graph/target.ts'
import type { Tensor } from '../graph/tensor.ts'
import { addScaled, attention, cacheRows, dot } from './attention.ts'
import { attentionJoin } from './attention_join.ts'
import { expectRotary, type RotaryAppend, rotaryAppend, rotate } from './rotary_append.ts'

export interface AttentionDecode extends RotaryAppend {
  /** Of y. */
  readonly format?: 'f32' | 'f16'
  /** Default: 'fused' on hardware where the heads fit. */
  readonly variant?: 'apart' | 'fused'
}

/**
 * `rotaryAppend`, then causal `attention`, for a run in which every segment has one token. Fused, the first dispatch does
 * both for a share of a row's keys and a second one joins the shares: few rows of many keys would not fill a GPU.
 * x ['T', (H + 2·KV)·D]; rope ['T', D]; appends to kv ['*', 2·KV·D]. Returns y ['T', H·D].
 */
export function attentionDecode(
  x: Tensor,
  rope: Tensor,
  kv: Tensor,
  run: Readonly<Record<'segments' | 'segmentOf' | 'chunks', Tensor>>,
  { format = 'f32', variant, ...shape }: AttentionDecode,
): Tensor {
  const op = 'attention_decode'
  const { heads, kvHeads, headDim, interleaved } = shape
  const { segments, segmentOf } = run
  expectRotary(op, x, rope, kv, run, shape)
  const { target } = graphOf(op, { x, rope, segments })
  const off = [kernel.name, 'attention_join'].some((name) => target.disabled.has(name))
  const tile = tiles.find((tile) => fits(tile, headDim, target.limits))
  const fused = tile && !target.software && !off ? 'fused' : 'apart'
  if ((variant ?? fused) === 'apart')
    return attention(rotaryAppend(x, rope, kv, run, shape), kv, run, { heads, kvHeads, headDim, format })
  if (!tile) throw new ShapeError(`${op}: no tile for heads of ${headDim} values; leave the variant open`)
  const width = heads * SPLITS * (headDim + 4)
  const { y: parts } = record<'y' | 'kv'>(kernel, {
    reads: { x, rope, segments, segmentOf },
    writes: { y: { shape: ['T', width] }, kv },
    constants: {
      ...{ HEADS: heads, KV_HEADS: kvHeads, D: headDim, INTERLEAVED: interleaved ? 1 : 0 },
      ...{ SCALE: headDim ** -0.5, CAUSAL: 1, SPLITS, ...tile, SPACE: space(tile, headDim) },
    },
    workgroups: ({ T }) => [kvHeads * Math.ceil(heads / kvHeads / 4), T, SPLITS],
  })
  return attentionJoin(parts, { heads, headDim, splits: SPLITS }, format)
}

/** Of a row: by its own length alone which keys are whose, so that its sums do not depend on its neighbours. */
const SPLITS = 16

interface Tile {
  readonly KEYS: number
  readonly WORKGROUP: number
}

/** The fastest of those tried on an H200, and one for devices with little memory. */
const tiles: readonly Tile[] = [
  { KEYS: 64, WORKGROUP: 256 },
  { KEYS: 32, WORKGROUP: 128 },
]

/** Vec4s of workgroup memory that parts of scores take, then sums of values. */
const space = ({ KEYS, WORKGROUP }: Tile, D: number): number => Math.max(KEYS * (D / 8 + 1), 4 * WORKGROUP)

function fits(tile: Tile, D: number, { invocations, workgroupBytes }: Limits): boolean {
  const { KEYS, WORKGROUP } = tile
  const teams = WORKGROUP / (D / 8)
  if (D % 8 !== 0 || teams % 2 !== 0 || KEYS % teams !== 0) return false
  return WORKGROUP <= invocations && 16 * (space(tile, D) + KEYS + 8) <= workgroupBytes
}

const kernel: Kernel = {
  name: 'attention_decode',
  optional: true,
  reads: ['x', 'rope', 'segments', 'segmentOf'],
  writes: ['y', 'kv'],
  shader: [step, segment, keys, rotary, eight, source],
  // The cache is the host's affair: this counts none of it.
  cost({ HEADS, KV_HEADS, D, SPLITS }, { T }) {
    const values = T * (HEADS! * (1 + SPLITS!) + 2 * KV_HEADS!) * D!
    return { flops: 8 * values, bytes: 4 * values }
  },
  cpu(views, constants, counts) {
    const { HEADS, KV_HEADS, D, SCALE, SPLITS } = constants as Record<string, number>
    const { segments, segmentOf, kv, y } = views as Record<'segments' | 'segmentOf' | 'kv' | 'y', View>
    const q = new Float32Array(counts.T * HEADS! * D!)
    rotate({ ...views, q }, constants, counts)
    const width = 2 * KV_HEADS! * D!
    const o = new Float64Array(D!)
    for (let t = 0; t < counts.T; t++) {
      const s = segments.subarray(8 * segmentOf[t]!, 8 * segmentOf[t]! + 8)
      const rows = cacheRows(s, s[5]! + s[7]! + 1) // of the prefix, of earlier runs, its own
      const share = Math.ceil(rows.length / SPLITS!)
      for (let part = 0; part < HEADS! * SPLITS!; part++) {
        const [h, split] = [Math.floor(part / SPLITS!), part % SPLITS!]
        const key = Math.floor(h / (HEADS! / KV_HEADS!)) * D!
        const seen = rows.subarray(split * share, (split + 1) * share)
        const scores = Array.from(seen, (row) => SCALE! * dot(q, (t * HEADS! + h) * D!, kv, row * width + key, D!))
        const top = scores.reduce((a, b) => Math.max(a, b), LOWEST)
        let weights = 0
        o.fill(0)
        scores.forEach((score, i) => {
          const p = Math.exp(score - top)
          weights += p
          addScaled(o, p, kv, seen[i]! * width + KV_HEADS! * D! + key)
        })
        y.set([...o, weights, top, 0, 0], (t * HEADS! * SPLITS! + part) * (D! + 4))
      }
    }
  },
}
/** Of a part that has no key. */
const LOWEST = -1e30
