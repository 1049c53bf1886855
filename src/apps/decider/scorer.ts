/** A prompt as token ids, and the positions whose next token is an answer letter. */
export interface Row {
  readonly ids: readonly number[]
  readonly slots: readonly number[]
}

/** What the app needs of a model. */
export interface Scorer {
  /**
   * Logits in f32 over the whole label table, for every slot of every row: `result[row][slot][label]`.
   * A row's numbers do not depend on the rows beside it.
   */
  score(
    rows: readonly Row[],
    options?: { signal?: AbortSignal | undefined },
  ): Promise<readonly (readonly Float32Array[])[]>
}
