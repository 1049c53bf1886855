import type { Inputs } from '../../device/device.ts'
import { type Segment, segmentTables } from '../../graph/segments.ts'
import type { Counts } from '../../graph/tensor.ts'
import { NO_COLUMN } from '../../kernels/code_embedding.ts'
import { frameInput, samplingInput } from '../../kernels/sample_codes.ts'
import type { ZonosConfig } from './config.ts'
import { gridWidth } from './delay.ts'
import type { Request } from './request.ts'
import { ropeTable } from './rope.ts'
import { samplingValues } from './sampler.ts'

/** Places of a row in the cache: its prefix, then its columns. */
export const capacityOf = ({ length, given, wanted }: Request): number => length + gridWidth(given.frames, wanted)

/** The column that the first run of a row makes. */
export const firstColumn = ({ given }: Request): number => given.frames + 1

/** Inputs of the run that makes a column: of all that comes before it in the first one, then of the column before alone. */
export function runOf(c: ZonosConfig, request: Request, column: number): { inputs: Inputs; counts: Counts } {
  const { prefixes, given, wanted, length, guidance, sampling } = request
  const first = column === firstColumn(request)
  const before = first ? 0 : length + column - 1
  const own = first ? length + column : 1
  const segments = prefixes.map((_, row): Segment => {
    const none = { from: 0, to: 0, prefixStart: 0, prefixLength: 0 }
    return { ...none, length: own, kvStart: row * capacityOf(request), kvBefore: before }
  })
  const { counts, ...tables } = segmentTables(segments, prefixes.length)
  const places = Array.from({ length: own }, (_, i) => before + i)
  const tokens = prefixes.flatMap(() => places)
  const inputs: Inputs = {
    ...tables,
    columns: Uint32Array.from(tokens, (place) => (place < length ? NO_COLUMN : place - length)),
    rope: ropeTable(tokens, c.headDim),
    frame: frameInput({
      column,
      endFrom: firstColumn(request) + sampling.minFrames,
      othersEnd: false,
      ends: !first,
      seed: sampling.seed,
      before: given.frames,
      wanted,
      shifted: sampling.writing === 'upstream',
    }),
    sampling: samplingInput(samplingValues(sampling, guidance, first)),
  }
  if (!first) return { inputs, counts }
  const rows = new Float32Array(tokens.length * c.hidden)
  prefixes.forEach((prefix, row) => rows.set(prefix.rows, row * own * c.hidden))
  const read = Uint32Array.from(segments, (_, row) => (row + 1) * own - 1)
  return { inputs: { ...inputs, prefix: rows, read }, counts }
}
