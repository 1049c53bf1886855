/** Writes bytes where they are wanted, without a copy in between: rows of a table into memory that the GPU reads. */
export interface Fill {
  readonly byteLength: number
  /** `into` has byteLength bytes at least, and may be memory that is slow to read. */
  fill(into: Uint8Array): void
}

/** Parts one after another. */
export const joined = (parts: readonly ArrayBufferView[]): Fill => ({
  byteLength: parts.reduce((sum, { byteLength }) => sum + byteLength, 0),
  fill(into) {
    let at = 0
    for (const { buffer, byteOffset, byteLength } of parts) {
      into.set(new Uint8Array(buffer, byteOffset, byteLength), at)
      at += byteLength
    }
  },
})

/** The bytes themselves, with zeros behind them up to `length`. */
export function filled({ byteLength, fill }: Fill, length = byteLength): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length)
  fill(bytes)
  return bytes
}
