/** Writes bytes where they are wanted, without a copy in between: rows of a table into memory that the GPU reads. */
export interface Fill {
  readonly byteLength: number
  /** `into` has byteLength bytes at least, and may be memory that is slow to read. */
  fill(into: Uint8Array): void
}

/** The bytes themselves, with zeros behind them up to `length`. */
export function filled({ byteLength, fill }: Fill, length = byteLength): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length)
  fill(bytes)
  return bytes
}
