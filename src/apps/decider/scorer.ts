import type { SeenImage } from '../../models/qwen3_5/album.ts'
import type { Positions } from '../../models/qwen3_5/rope.ts'

/** A prompt as token ids, and the positions whose next token is an answer letter. */
export interface Row {
  readonly ids: readonly number[]
  readonly slots: readonly number[]
  /** How many of its first tokens later rows will begin with too: worth keeping. Absent: as far as is known, none. */
  readonly prefix?: number
  /** Those that its ids beyond the vocabulary are tokens of. */
  readonly images?: readonly SeenImage[]
  /** Where its tokens stand; absent: one after another. */
  readonly positions?: Positions
}

/** Logits in f32 over the whole label table: `logits[row][slot][label]`. */
export type Logits = readonly (readonly Float32Array[])[]

/** What the app needs of a model. */
export interface Scorer {
  /** Logits of every slot of every row. A row's numbers do not depend on the rows beside it. */
  score(rows: readonly Row[], options?: { signal?: AbortSignal | undefined }): Promise<Logits>
}
