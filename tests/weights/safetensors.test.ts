import { assert, asyncProperty, constantFrom, integer, oneof, record, string, tuple, uint8Array } from 'fast-check'
import { describe, expect, test } from 'vitest'
import { WeightsError } from '../../src/errors.ts'
import { openCheckpoint, parseHeader } from '../../src/weights/safetensors.ts'
import { openSource } from '../../src/weights/source.ts'
import { blob, f32, file, half, safetensors } from './build.ts'

const text = (json: string) => new TextEncoder().encode(json)
const open = (files: Record<string, Uint8Array<ArrayBuffer> | string>) =>
  openCheckpoint(openSource(Object.fromEntries(Object.entries(files).map(([path, bytes]) => [path, blob(bytes)]))))
const single = (bytes: Uint8Array<ArrayBuffer>) => open({ 'model.safetensors': bytes })

const sample = [
  f32('a.weight', [2, 3], [1, 2, 3, 4, 5, 6]),
  half('b', 'BF16', [3], [0x3f80, 0, 1]),
  { name: 'c "quoted" é', dtype: 'I64', shape: [], bytes: new Uint8Array(8) },
  { name: 'empty', dtype: 'U8', shape: [0, 4], bytes: new Uint8Array(0) },
]

describe('one file', () => {
  test('gives names, dtypes, shapes and absolute offsets', async () => {
    const bytes = safetensors(sample, 3)
    const { tensors, bytes: total } = await single(bytes)
    expect([...tensors.keys()].sort()).toEqual(sample.map((t) => t.name).sort())
    expect(total).toBe(24 + 6 + 8)
    for (const { name, dtype, shape, bytes: data } of sample) {
      const t = tensors.get(name)!
      expect(t).toMatchObject({ name, dtype, shape, file: 'model.safetensors' })
      expect(bytes.slice(t.begin, t.end)).toEqual(data)
    }
  })
  test('may hold nothing, and needs no metadata', async () => {
    expect((await single(file('{}'))).tensors.size).toBe(0)
    expect((await single(file('{"__metadata__":{"a":"}\\"{"}}'))).tensors.size).toBe(0)
  })
  test('is the published checkpoint', async () => {
    const { tensors, bytes } = await openCheckpoint(openSource('public/models/decider-nano'))
    expect(tensors.size).toBeGreaterThan(100)
    expect(tensors.get('model.language_model.embed_tokens.weight')).toMatchObject({ dtype: 'F16', shape: [4096, 256] })
    expect(bytes).toBeGreaterThan(16e6)
  })
})

describe('a damaged file is a WeightsError', () => {
  const entry = (dtype: unknown, shape: unknown, offsets: unknown) =>
    JSON.stringify({ x: { dtype, shape, data_offsets: offsets } })
  const data = new Uint8Array(8)
  const two = (a: [number, number], b: [number, number]) =>
    file(
      JSON.stringify({
        a: { dtype: 'U8', shape: [a[1] - a[0]], data_offsets: a },
        b: { dtype: 'U8', shape: [b[1] - b[0]], data_offsets: b },
      }),
      data,
    )
  test.each<[string, Uint8Array<ArrayBuffer>, RegExp]>([
    ['empty', new Uint8Array(0), /it has 0 bytes/],
    ['shorter than the length', new Uint8Array(7), /it has 7 bytes/],
    ['header longer than the file', file('{}', data, 11), /header has 11 bytes, the whole file 18/],
    ['header over 100 MB', file('{}', data, 100_000_001), /expected at most 100000000/],
    ['header of 2^63 bytes', file('{}', data, 2n ** 63n), /expected at most/],
    ['truncated', safetensors(sample).slice(0, -1), /tensors end at byte \d+, the file at \d+/],
    ['too long', file(entry('U8', [7], [0, 7]), data), /tensors end at byte \d+, the file at \d+/],
    ['no JSON', file('{"a":'), /not JSON/],
    ['nested without end', file('['.repeat(200_000)), /not JSON/],
    ['no UTF-8', file(Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x7d)), /not JSON/],
    ['a list', file('[]'), /not a JSON object/],
    ['null', file('null'), /not a JSON object/],
    ['an entry that is no object', file('{"x":1}'), /x: the entry is 1/],
    ['an entry without offsets', file('{"x":{"dtype":"F32","shape":[]}}'), /the entry is/],
    ['no dtype', file(entry(null, [2], [0, 8]), data), /the entry is/],
    ['a negative dimension', file(entry('F32', [-2], [0, 8]), data), /the entry is/],
    ['a broken dimension', file(entry('F32', [1.5], [0, 8]), data), /the entry is/],
    ['a shape that is no list', file(entry('F32', 2, [0, 8]), data), /the entry is/],
    ['a huge dimension', file(entry('F32', [2 ** 60], [0, 8]), data), /the entry is/],
    ['a huge product', file(entry('F32', [2 ** 50, 2 ** 50], [0, 8]), data), /takes .* bytes/],
    ['one offset', file(entry('F32', [2], [8]), data), /the entry is/],
    ['offsets that are no numbers', file(entry('F32', [2], ['0', '8']), data), /the entry is/],
    ['offsets in the wrong order', file(entry('F32', [2], [8, 0]), data), /hold -8/],
    ['offsets behind the file', file(entry('F32', [2], [8, 16]), data), /belong to no tensor/],
    ['a shape that does not fit', file(entry('F32', [3], [0, 8]), data), /takes 12 bytes, data_offsets \[0,8\] hold 8/],
    ['a dtype that does not fit', file(entry('F16', [2], [0, 8]), data), /takes 4 bytes/],
    ['overlapping tensors', two([0, 5], [4, 8]), /b overlaps/],
    ['a tensor twice over', two([0, 8], [0, 8]), /overlaps/],
    ['a hole', two([0, 3], [4, 8]), /1 bytes before b/],
    [
      'a name twice',
      file(`{"x":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},${entry('U8', [8], [0, 8]).slice(1)}`, data),
      /x is in the header twice/,
    ],
    [
      'an escaped name twice',
      file(`{"x":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"\\u0078" :{}}`, data),
      /x is in the header twice/,
    ],
    [
      'a dtype twice',
      file(`{"x":{"dtype":"F32","dtype":"U8","shape":[8],"data_offsets":[0,8]}}`, data),
      /dtype is in the header twice/,
    ],
  ])('%s', async (_, bytes, message) => {
    const opened = single(bytes)
    await expect(opened).rejects.toThrow(message)
    await expect(opened).rejects.toMatchObject({ name: 'WeightsError', code: 'format' })
  })
  test('an unknown dtype is unsupported', async () => {
    const opened = single(file(entry('F128', [1], [0, 8]), data))
    await expect(opened).rejects.toMatchObject({ name: 'WeightsError', code: 'unsupported' })
    await expect(single(file(entry('toString', [1], [0, 8]), data))).rejects.toThrow('has dtype toString')
  })
  test('a name like __proto__ is a name', () => {
    const json = '{"__proto__":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'
    expect(parseHeader(text(json), 8 + json.length + 1, 'f').map((t) => t.name)).toEqual(['__proto__'])
  })
  test('a string of 20 MB is scanned without recursion', () => {
    const json = `{"__metadata__":{"note":"${'\\"{'.repeat(7e6)}"}}`
    expect(parseHeader(text(json), 8 + json.length, 'f')).toEqual([])
  })
})

describe('shards', () => {
  const a = [f32('a', [2], [1, 2])]
  const b = [f32('b', [1], [3]), f32('c', [1], [4])]
  const index = (weight_map: unknown) => JSON.stringify({ metadata: { total_size: 16 }, weight_map })
  const map = { a: '1.safetensors', b: '2.safetensors', c: '2.safetensors' }
  const files = { '1.safetensors': safetensors(a), '2.safetensors': safetensors(b) }
  const opened = (weight_map: unknown, others: object = files) =>
    open({ 'model.safetensors.index.json': index(weight_map), ...others })

  test('are joined', async () => {
    const { tensors, bytes } = await opened(map)
    expect([...tensors.values()].map((t) => [t.name, t.file])).toEqual(Object.entries(map))
    expect(bytes).toBe(16)
  })
  test.each<[string, unknown, object, string, RegExp]>([
    ['a missing shard', map, { '1.safetensors': safetensors(a) }, 'missing', /has no 2\.safetensors/],
    ['a tensor that is not in its shard', { ...map, d: '2.safetensors' }, files, 'missing', /2\.safetensors: has no d/],
    ['a tensor of another shard', { ...map, c: '1.safetensors' }, files, 'missing', /1\.safetensors: has no c/],
    ['a tensor that the index lacks', { a: map.a, b: map.b }, files, 'format', /c is in it, but not in the index/],
    [
      'a tensor in two shards',
      map,
      { ...files, '2.safetensors': safetensors([...b, ...a]) },
      'format',
      /a is also in 1/,
    ],
    ['no weight_map', undefined, files, 'format', /no weight_map/],
    ['a weight_map that is a list', [], files, 'format', /no weight_map/],
    ['a shard that is no name', { a: 1 }, files, 'format', /a is in 1, expected/],
    ['a shard above the folder', { a: '../1.safetensors' }, files, 'format', /of the same folder/],
    ['a shard at the root', { a: '/etc/1.safetensors' }, files, 'format', /of the same folder/],
    ['a shard on a Windows path', { a: '..\\1.safetensors' }, files, 'format', /of the same folder/],
  ])('%s', async (_, weightMap, others, code, message) => {
    const failed = opened(weightMap, others)
    await expect(failed).rejects.toThrow(message)
    await expect(failed).rejects.toMatchObject({ name: 'WeightsError', code })
  })
  test('an index that is no JSON', async () => {
    const failed = open({ 'model.safetensors.index.json': '{' })
    await expect(failed).rejects.toThrow(/model\.safetensors\.index\.json: is not JSON/)
  })
  test('neither a file nor an index', async () => {
    await expect(open({ 'config.json': '{}' })).rejects.toMatchObject({ code: 'missing' })
  })
})

test('10,000 damaged files are parsed or refused', async () => {
  const valid = safetensors(sample)
  const headerBytes = Number(new DataView(valid.buffer).getBigUint64(0, true))
  const header = new TextDecoder().decode(valid.subarray(8, 8 + headerBytes))
  const data = valid.slice(8 + headerBytes)
  const at = integer({ min: 0, max: valid.length - 1 })
  const edit = (bytes: Uint8Array, i: number, remove: number, insert: Uint8Array) =>
    Uint8Array.from([...bytes.subarray(0, i), ...insert, ...bytes.subarray(i + remove)])
  /** Bytes replaced, removed or put in anywhere, with the length as it was. */
  const bytesChanged = tuple(at, integer({ min: 0, max: 12 }), uint8Array({ maxLength: 12 })).map(
    ([i, remove, insert]) => edit(valid, i, remove, insert),
  )
  const truncated = at.map((end) => valid.slice(0, end))
  /** The header changed as text, so that it mostly stays JSON, with the length that it now has. */
  const token = /"(?:[^"\\]|\\.)*"|-?\d+|[[\]{}:,]/g
  const tokens = header.match(token)!
  const replacement = oneof(
    constantFrom('0', '-1', '1e3', '1e300', '1.5', '9007199254740993', 'null', 'true', '[]', '{}', '""', ',', ''),
    constantFrom('"F32"', '"F16"', '"BF16"', '"I64"', '"dtype"', '"shape"', '"data_offsets"', '"__proto__"'),
    integer({ min: 0, max: 64 }).map(String),
    string().map((s) => JSON.stringify(s)),
    integer({ min: 0, max: tokens.length - 1 }).map((i) => tokens[i]!),
  )
  const change = record({ i: integer({ min: 0, max: tokens.length - 1 }), to: replacement })
  const headerChanged = tuple(change, change, integer({ min: 0, max: 3 })).map(([one, two, both]) => {
    const changed = [...tokens]
    changed[one.i] = one.to
    if (both === 0) changed[two.i] = two.to
    return file(changed.join(''), data)
  })
  const seen = { parsed: 0, refused: 0 }
  await assert(
    asyncProperty(oneof(bytesChanged, truncated, { weight: 2, arbitrary: headerChanged }), async (bytes) => {
      try {
        const { tensors } = await single(bytes as Uint8Array<ArrayBuffer>)
        for (const t of tensors.values()) {
          expect(8 <= t.begin && t.begin <= t.end && t.end <= bytes.length).toBe(true)
        }
        seen.parsed++
      } catch (error) {
        if (!(error instanceof WeightsError)) throw error
        seen.refused++
      }
    }),
    { numRuns: 10_000 },
  )
  expect(seen.parsed + seen.refused).toBe(10_000)
  expect(seen.parsed).toBeGreaterThan(100)
  expect(seen.refused).toBeGreaterThan(1000)
})
