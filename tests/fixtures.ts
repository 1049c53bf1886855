import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliDecompressSync } from 'node:zlib'

const packed = join(import.meta.dirname, 'fixtures')
const unpacked = join(import.meta.dirname, '../.cache/fixtures')

/** A file of tests/fixtures; the big ones lie there as .br and are unpacked into .cache on first use. */
export function fixturePath(path: string): string {
  if (existsSync(join(packed, path))) return join(packed, path)
  const out = join(unpacked, path)
  if (!existsSync(out)) {
    const bytes = brotliDecompressSync(readFileSync(join(packed, `${path}.br`)))
    mkdirSync(join(out, '..'), { recursive: true })
    writeFileSync(`${out}.${process.pid}`, bytes)
    renameSync(`${out}.${process.pid}`, out) // workers may unpack at the same time
  }
  return out
}

/** A model folder with every file unpacked: what loaders take. */
export function fixtureModel(name: string): string {
  const out = join(unpacked, name)
  fixturePath(`${name}/model.safetensors`)
  for (const file of ['config.json', 'inputs.json'])
    writeFileSync(join(out, file), readFileSync(join(packed, name, file)))
  return out
}

export const fixtureJson = <A>(path: string): A => JSON.parse(readFileSync(fixturePath(path), 'utf8')) as A

export interface Stored {
  readonly shape: readonly number[]
  readonly data: Float32Array
}

/** The tensors of a fixture file as floats (F32, I32, U8). */
export function fixtureTensors(path: string): {
  names: string[]
  metadata: Readonly<Record<string, string>>
  get(name: string): Stored
} {
  const file = readFileSync(fixturePath(path))
  const length = Number(file.readBigUInt64LE(0))
  const header = JSON.parse(file.subarray(8, 8 + length).toString()) as Record<
    string,
    { dtype: string; shape: number[]; data_offsets: [number, number] }
  >
  return {
    metadata: (header.__metadata__ ?? {}) as unknown as Record<string, string>,
    names: Object.keys(header).filter((name) => name !== '__metadata__'),
    get(name) {
      const entry = header[name]
      if (!entry) throw new Error(`fixture ${path} has no ${name}`)
      const [begin, end] = entry.data_offsets
      const bytes = Uint8Array.from(file.subarray(8 + length + begin, 8 + length + end)).buffer
      if (entry.dtype === 'F32') return { shape: entry.shape, data: new Float32Array(bytes) }
      if (entry.dtype === 'I32') return { shape: entry.shape, data: Float32Array.from(new Int32Array(bytes)) }
      if (entry.dtype === 'U8') return { shape: entry.shape, data: Float32Array.from(new Uint8Array(bytes)) }
      throw new Error(`fixture ${path}: ${name} is ${entry.dtype}`)
    },
  }
}
