/** The tokens that condition a text, before the prefix projection. */
export interface Prefix {
  /** [L, d]: a row per token, in the order of the config's conditioners; phonemes have one per id. */
  readonly rows: Float32Array
}
