import { type Checkpoint, openCheckpoint } from '../../src/weights/safetensors.ts'
import { openSource } from '../../src/weights/source.ts'

export interface Entry {
  readonly name: string
  readonly dtype: string
  readonly shape: readonly number[]
  readonly bytes: Uint8Array
}

export const bytesOf = (a: ArrayBufferView): Uint8Array => new Uint8Array(a.buffer, a.byteOffset, a.byteLength)

export const f32 = (name: string, shape: readonly number[], values: readonly number[]): Entry => ({
  name,
  dtype: 'F32',
  shape,
  bytes: bytesOf(Float32Array.from(values)),
})

/** F16 or BF16 by their bits. */
export const half = (name: string, dtype: string, shape: readonly number[], bits: readonly number[]): Entry => ({
  name,
  dtype,
  shape,
  bytes: bytesOf(Uint16Array.from(bits)),
})

/** Length, header and data of a safetensors file. */
export function file(
  header: string | Uint8Array,
  data = new Uint8Array(0),
  length?: number | bigint,
): Uint8Array<ArrayBuffer> {
  const json = typeof header === 'string' ? new TextEncoder().encode(header) : header
  const out = new Uint8Array(8 + json.length + data.length)
  new DataView(out.buffer).setBigUint64(0, BigInt(length ?? json.length), true)
  out.set(json, 8)
  out.set(data, 8 + json.length)
  return out
}

/** A safetensors file. `pad` spaces behind the header move the data, so that tensors are not aligned. */
export function safetensors(entries: readonly Entry[], pad = 0): Uint8Array<ArrayBuffer> {
  const header: Record<string, unknown> = { __metadata__: { format: 'pt' } }
  let end = 0
  for (const { name, dtype, shape, bytes } of entries) {
    header[name] = { dtype, shape, data_offsets: [end, end + bytes.length] }
    end += bytes.length
  }
  const data = new Uint8Array(end)
  entries.reduce((at, { bytes }) => {
    data.set(bytes, at)
    return at + bytes.length
  }, 0)
  return file(JSON.stringify(header) + ' '.repeat(pad), data)
}

export const blob = (bytes: Uint8Array<ArrayBuffer> | string): Blob => new Blob([bytes])

export const checkpoint = (entries: readonly Entry[], pad = 0): Promise<Checkpoint> =>
  openCheckpoint(openSource({ 'model.safetensors': blob(safetensors(entries, pad)) }))
