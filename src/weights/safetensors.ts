import { WeightsError } from '../errors.ts'
import { readJson, type Source } from './source.ts'

/** A tensor in a safetensors file. */
export interface StoredTensor {
  readonly name: string
  /** As the file spells it: F32, BF16, I64, .... */
  readonly dtype: string
  readonly shape: readonly number[]
  readonly file: string
  /** Bytes [begin, end) of the file. */
  readonly begin: number
  readonly end: number
}

export interface Checkpoint {
  readonly source: Source
  readonly tensors: ReadonlyMap<string, StoredTensor>
  /** Of all tensors together. */
  readonly bytes: number
}

// biome-ignore format: one line per width
const dtypeBytes: Readonly<Record<string, number>> = {
  BOOL: 1, U8: 1, I8: 1, F8_E4M3: 1, F8_E5M2: 1, F8_E8M0: 1,
  U16: 2, I16: 2, F16: 2, BF16: 2,
  U32: 4, I32: 4, F32: 4,
  U64: 8, I64: 8, F64: 8, C64: 8,
}

/** The format's own limit. */
const headerLimit = 100_000_000

/**
 * Reads the headers of `model.safetensors`, or of the shards that `model.safetensors.index.json` names. No weight is read.
 * Format: https://huggingface.co/docs/safetensors. WeightsError for whatever is missing or not as the format says.
 */
export async function openCheckpoint(
  source: Source,
  { signal }: { signal?: AbortSignal | undefined } = {},
): Promise<Checkpoint> {
  const single = 'model.safetensors'
  const index = `${single}.index.json`
  const tensors = new Map<string, StoredTensor>()
  if ((await source.size(single, signal)) !== undefined) {
    for (const t of await readHeader(source, single, signal)) tensors.set(t.name, t)
  } else if ((await source.size(index, signal)) !== undefined) {
    const shards = parseIndex(await readJson(source, index, signal), `${source.name}/${index}`)
    for (const [file, names] of shards) {
      for (const t of await readHeader(source, file, signal)) {
        if (tensors.has(t.name)) throw damaged(file, `${t.name} is also in ${tensors.get(t.name)?.file}`)
        if (!names.delete(t.name)) throw damaged(file, `${t.name} is in it, but not in the index as one of its tensors`)
        tensors.set(t.name, t)
      }
      const [missing] = names
      if (missing !== undefined) {
        throw new WeightsError(
          'missing',
          `${file}: has no ${missing}, which the index says it has; load the files again`,
        )
      }
    }
  } else {
    throw new WeightsError(
      'missing',
      `${source.name}: has neither ${single} nor ${index}; expected a safetensors model`,
    )
  }
  const bytes = [...tensors.values()].reduce((sum, t) => sum + t.end - t.begin, 0)
  return { source, tensors, bytes }
}

/** Names of the tensors of each shard. */
function parseIndex(index: unknown, where: string): Map<string, Set<string>> {
  const map = isObject(index) ? index.weight_map : undefined
  if (!isObject(map)) throw damaged(where, 'there is no weight_map')
  const shards = new Map<string, Set<string>>()
  for (const [name, file] of Object.entries(map)) {
    if (typeof file !== 'string' || !/^[^/\\]+\.safetensors$/.test(file)) {
      throw damaged(where, `${name} is in ${JSON.stringify(file)}, expected a .safetensors file of the same folder`)
    }
    if (!shards.has(file)) shards.set(file, new Set())
    shards.get(file)?.add(name)
  }
  return shards
}

/** A file is: the header's length (u64), the header (JSON), the data. */
async function readHeader(source: Source, file: string, signal: AbortSignal | undefined): Promise<StoredTensor[]> {
  const size = await source.size(file, signal)
  if (size === undefined) throw new WeightsError('missing', `${source.name}: has no ${file}; add the shard`)
  if (size < 8) throw damaged(file, `it has ${size} bytes, expected at least 8`)
  const prefix = await source.read(file, 0, 8, signal)
  const length = Number(new DataView(prefix.buffer, prefix.byteOffset).getBigUint64(0, true))
  if (length > headerLimit) throw damaged(file, `the header has ${length} bytes, expected at most ${headerLimit}`)
  if (8 + length > size) throw damaged(file, `the header has ${length} bytes, the whole file ${size}`)
  return parseHeader(await source.read(file, 8, 8 + length, signal), size, file)
}

/**
 * The tensors that a header describes, in file order.
 *
 * @param header the JSON, without the 8 bytes of length before it
 * @param fileBytes size of the whole file
 * @param file for the messages and for StoredTensor.file
 */
export function parseHeader(header: Uint8Array, fileBytes: number, file: string): StoredTensor[] {
  const { text, entries } = parseObject(header, file)
  const twice = repeatedKey(text)
  if (twice !== undefined) throw damaged(file, `${twice} is in the header twice`)
  const base = 8 + header.length
  const tensors = Object.entries(entries)
    .filter(([name]) => name !== '__metadata__')
    .map(([name, entry]) => parseEntry(name, entry, base, file))
    .sort((a, b) => a.begin - b.begin || a.end - b.end)
  let end = base // "the byte buffer needs to be entirely indexed, and cannot contain holes"
  for (const t of tensors) {
    if (t.begin < end) throw damaged(file, `${t.name} overlaps the tensor before it`)
    if (t.begin > end) throw damaged(file, `${t.begin - end} bytes before ${t.name} belong to no tensor`)
    end = t.end
  }
  if (end !== fileBytes) throw damaged(file, `its tensors end at byte ${end}, the file at ${fileBytes}`)
  return tensors
}

function parseObject(header: Uint8Array, file: string): { text: string; entries: Record<string, unknown> } {
  let entries: unknown
  let text = ''
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(header)
    entries = JSON.parse(text)
  } catch (cause) {
    throw damaged(file, `the header is not JSON: ${(cause as Error).message}`, { cause })
  }
  if (!isObject(entries)) throw damaged(file, 'the header is not a JSON object')
  return { text, entries }
}

function parseEntry(name: string, entry: unknown, base: number, file: string): StoredTensor {
  const where = `${file}, ${name}`
  const { dtype, shape, data_offsets: offsets } = isObject(entry) ? entry : {}
  if (typeof dtype !== 'string' || !isSizes(shape) || !isSizes(offsets) || offsets.length !== 2) {
    throw damaged(
      where,
      `the entry is ${JSON.stringify(entry).slice(0, 200)}, expected dtype, shape and two data_offsets`,
    )
  }
  if (!Object.hasOwn(dtypeBytes, dtype)) {
    const known = Object.keys(dtypeBytes).join(' ')
    throw new WeightsError('unsupported', `${where}: has dtype ${dtype}, expected one of ${known}`)
  }
  const [from, to] = offsets as [number, number]
  const bytes = shape.reduce((n, d) => n * d, dtypeBytes[dtype]!)
  if (to - from !== bytes) {
    throw damaged(
      where,
      `${dtype} of shape [${shape}] takes ${bytes} bytes, data_offsets [${offsets}] hold ${to - from}`,
    )
  }
  return { name, dtype, shape, file, begin: base + from, end: base + to }
}

/**
 * A key that an object of this JSON has twice: JSON.parse keeps the last one and says nothing. The text is known to be
 * valid JSON, so strings and braces are all that must be told apart; a string before a colon is a key.
 */
function repeatedKey(json: string): string | undefined {
  const open: Set<string>[] = []
  for (let i = 0; i < json.length; i++) {
    if (json[i] === '{') open.push(new Set())
    else if (json[i] === '}') open.pop()
    else if (json[i] === '"') {
      const start = i++
      for (; json[i] !== '"'; i++) if (json[i] === '\\') i++
      let next = i + 1
      while (isSpace(json[next])) next++
      if (json[next] !== ':') continue
      const key = JSON.parse(json.slice(start, i + 1)) as string
      if (open.at(-1)?.has(key)) return key
      open.at(-1)?.add(key)
    }
  }
  return undefined
}

const isSpace = (c: string | undefined): boolean => c === ' ' || c === '\n' || c === '\r' || c === '\t'
const isObject = (x: unknown): x is Record<string, unknown> => typeof x === 'object' && x !== null && !Array.isArray(x)
const isSizes = (x: unknown): x is number[] => Array.isArray(x) && x.every((n) => Number.isSafeInteger(n) && n >= 0)

const damaged = (where: string, what: string, options?: ErrorOptions): WeightsError =>
  new WeightsError('format', `${where}: ${what}; the file is damaged, load or convert it again`, options)
