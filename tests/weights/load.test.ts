import { describe, expect, test } from 'vitest'
import { quantized } from '../../src/device/quants.ts'
import { DeviceError } from '../../src/errors.ts'
import { planChunks } from '../../src/weights/chunks.ts'
import { type Progress, Weights } from '../../src/weights/load.ts'
import { openCheckpoint, type StoredTensor } from '../../src/weights/safetensors.ts'
import { openSource, type Source } from '../../src/weights/source.ts'
import { checkpoint, f32, half } from './build.ts'
import { FakeDevice, f16, same } from './fake_device.ts'

const MiB = 2 ** 20
const entries = [
  f32('a', [2, 2], [1, 2, 3, 4]),
  half('odd', 'BF16', [3], [0x3f80, 0x4000, 0xc040]), // 1, 2, -3: moves what follows off its alignment
  half('b', 'F16', [3, 2], [0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600]), // 1 to 6
  half('c', 'BF16', [1, 2], [0x3f80, 0xbf80]),
]

describe('a load', () => {
  test.each([0, 1, 2, 3])('converts, stacks and keeps shapes (data moved by %i)', async (pad) => {
    const device = new FakeDevice()
    const weights = new Weights(await checkpoint(entries, pad), device, same)
    const a = weights.matrix('a', [2, 2])
    const b = weights.matrix('b', [3, 2])
    const wide = weights.matrix('b', [3, 2], 'f32')
    const odd = weights.matrix('odd', [3])
    const vector = weights.vector('odd', [3])
    const mixed = weights.stack(
      'mixed',
      [
        { name: 'c', rows: 1 },
        { name: 'a', rows: 2 },
      ],
      2,
    )
    const stack = weights.stack(
      'stack',
      [
        { name: 'b', rows: 3 },
        { name: 'c', rows: 1 },
      ],
      2,
      'f16',
    )
    const report = await weights.stream()
    expect(report).toEqual({ bytes: 16 + 6 + 12 + 4, inexact: 0, ignored: [] })
    expect(device.f32(a)).toEqual([1, 2, 3, 4])
    expect(device.u16(b)).toEqual([0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600])
    expect(device.f32(wide)).toEqual([1, 2, 3, 4, 5, 6])
    expect(device.u16(odd)).toEqual([0x3f80, 0x4000, 0xc040, 0])
    expect(device.f32(vector)).toEqual([1, 2, -3])
    expect(device.f32(mixed)).toEqual([1, -1, 1, 2, 3, 4])
    expect(device.u16(stack)).toEqual([0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x3c00, 0xbc00])
    expect([stack.label, stack.shape, stack.format]).toEqual(['stack', [4, 2], 'f16'])
    expect(device.flushes).toBeGreaterThan(0)
    expect(device.released).toEqual([])
  })

  test.each([0, 1])('arranges values, zeros where none is stored (data moved by %i)', async (pad) => {
    const device = new FakeDevice()
    const weights = new Weights(await checkpoint(entries, pad), device, f16)
    const turned = weights.arranged('b', [3, 2], [2, 4], (i) => (i % 4 < 3 ? (i % 4) * 2 + Math.floor(i / 4) : -1))
    const odd = weights.arranged('odd', [3], [5], (i) => 2 - i, 'f32')
    weights.matrix('a', [2, 2])
    weights.matrix('c', [1, 2])
    expect(await weights.stream()).toMatchObject({ bytes: 16 + 6 + 12 + 4, inexact: 0 })
    expect(device.u16(turned)).toEqual([0x3c00, 0x4200, 0x4500, 0, 0x4000, 0x4400, 0x4600, 0])
    expect(device.f32(odd)).toEqual([-3, 2, 1, 0, 0])
    expect(turned.shape).toEqual([2, 4])
    expect(() => weights.arranged('odd', [4], [4], (i) => i)).toThrow('odd has shape [3], expected [4]')
  })

  test('arranges a tensor that is read in several chunks', async () => {
    const n = 5 * MiB // of halves
    const device = new FakeDevice()
    const bits = new Uint16Array(n).map((_, i) => i % 1000)
    const large = { name: 'large', dtype: 'F16', shape: [n], bytes: new Uint8Array(bits.buffer) }
    const weights = new Weights(await checkpoint([large]), device, same)
    const kept = weights.arranged('large', [n], [n], (i) => n - 1 - i)
    await weights.stream()
    expect(device.u16(kept).every((v, i) => v === (n - 1 - i) % 1000)).toBe(true)
  })

  test('gives the host values as f32, when they are there', async () => {
    const weights = new Weights(await checkpoint(entries), new FakeDevice(), f16)
    const values = ['a', 'b', 'odd'].map((name) => weights.values(name, weights.shapeOf(name)!))
    weights.ignore((name) => name === 'c')
    expect(() => values[0]!.data).toThrow('a: is not loaded; await stream() first')
    await weights.stream()
    expect(values.map(({ data }) => [...data])).toEqual([
      [1, 2, 3, 4],
      [1, 2, 3, 4, 5, 6],
      [1, 2, -3],
    ])
    expect(values[2]!.shape).toEqual([3])
  })

  test('quantises while it streams, whole groups at a time', async () => {
    const device = new FakeDevice()
    const [rows, width] = [2200, 1024] // more than a chunk of 8 MiB as f32
    const wave = Array.from({ length: rows * width }, (_, i) => Math.sin(i) * ((i >> 5) % 7))
    const weights = new Weights(await checkpoint([f32('w', [rows, width], wave)], 2), device, same)
    const w = weights.matrix('w', [rows, width], 'q8')
    await weights.stream()
    expect(w.format).toBe('q8')
    expect(device.memory.get(w)).toEqual(quantized(Float32Array.from(wave)))
    const narrow = new Weights(await checkpoint(entries), device, same)
    expect(() => narrow.matrix('a', [2, 2], 'q8')).toThrow('rows are multiples of 64')
  })

  test('stacks vectors, and tells shapes', async () => {
    const device = new FakeDevice()
    const weights = new Weights(await checkpoint(entries.slice(0, 2)), device, f16)
    const twice = weights.vectors('twice', ['odd', 'odd'], 3)
    weights.matrix('a', [2, 2])
    await weights.stream()
    expect(device.f32(twice)).toEqual([1, 2, -3, 1, 2, -3])
    expect(twice.shape).toEqual([2, 3])
    expect(weights.shapeOf('a')).toEqual([2, 2])
    expect(weights.shapeOf('nothing')).toBeUndefined()
  })

  test('counts what f16 rounds', async () => {
    const device = new FakeDevice()
    const weights = new Weights(await checkpoint([f32('a', [4], [1, 0.1, 2 ** -26, 0])]), device, f16)
    weights.matrix('a', [4])
    expect((await weights.stream()).inexact).toBe(2)
  })

  test('renames, and ignores by both ways', async () => {
    const device = new FakeDevice()
    const rename = (name: string) => (name === 'odd' ? undefined : `model.${name}`)
    const weights = new Weights(await checkpoint(entries), device, { ...same, rename })
    expect([weights.has('model.a'), weights.has('a'), weights.has('model.odd')]).toEqual([true, false, false])
    weights.matrix('model.a', [2, 2])
    weights.ignore((name) => name === 'model.b' || name === 'model.c' || name === 'model.a')
    const report = await weights.stream()
    expect(report.bytes).toBe(16) // of what is used, although ignore() named it
    expect([...report.ignored].sort()).toEqual(['b', 'c', 'odd'])
  })

  test('tells its progress', async () => {
    const weights = new Weights(await checkpoint(entries), new FakeDevice(), same)
    for (const [name, shape] of [
      ['a', [2, 2]],
      ['odd', [3]],
      ['b', [3, 2]],
      ['c', [1, 2]],
    ] as const)
      weights.matrix(name, shape)
    const seen: Progress[] = []
    await weights.stream({ onProgress: (p) => seen.push(p) })
    expect(seen.at(-1)).toEqual({ loadedBytes: 38, totalBytes: 38, tensor: 'c' })
  })

  test('is the published checkpoint, every byte of it', async () => {
    const opened = await openCheckpoint(openSource('public/models/decider-nano'))
    const device = new FakeDevice()
    const weights = new Weights(opened, device, same)
    const kept = [...opened.tensors.values()].map((t) => ({ t, kept: weights.matrix(t.name, t.shape) }))
    expect((await weights.stream()).bytes).toBe(opened.bytes)
    for (const { t, kept: k } of kept) {
      const stored = await opened.source.read(t.file, t.begin, t.end)
      expect(Buffer.compare(device.memory.get(k)!.subarray(0, stored.length), stored), t.name).toBe(0)
    }
    expect(kept.length).toBeGreaterThan(100)
  })
})

describe('large checkpoints', () => {
  /** Tensors of zeros that no one holds: reads are counted instead. */
  function sourceOf(sizes: readonly number[], onRead: (start: number, end: number) => void = () => {}) {
    const list = sizes.map((mib, i) => ({ name: `t${i}`, shape: [mib, MiB / 2], dtype: 'BF16', file: 'f' }))
    let end = 8
    const tensors = new Map<string, StoredTensor>()
    for (const t of list) {
      const begin = end
      end += t.shape[0]! * MiB
      tensors.set(t.name, { ...t, begin, end })
    }
    let [reading, most] = [0, 0]
    const source: Source = {
      name: 'zeros',
      remote: false,
      size: async () => end,
      async read(_, start, stop) {
        onRead(start, stop)
        most = Math.max(most, ++reading)
        await new Promise((done) => setTimeout(done))
        reading--
        return new Uint8Array(stop - start)
      },
    }
    return { checkpoint: { source, tensors, bytes: end - 8 }, mostReads: () => most }
  }

  test('come in file order, at most 8 MiB at a time, with a flush every 64 MiB', async () => {
    const reads: [number, number][] = []
    const { checkpoint: zeros, mostReads } = sourceOf([100, 1, 1, 60], (start, end) => reads.push([start, end]))
    const device = new FakeDevice()
    const weights = new Weights(zeros, device, f16)
    for (const i of [3, 1, 0, 2]) weights.matrix(`t${i}`, zeros.tensors.get(`t${i}`)!.shape)
    const report = await weights.stream()
    expect(report.bytes).toBe(162 * MiB)
    expect(reads.length).toBe(21)
    expect(reads.every(([start, end], i) => end - start <= 8 * MiB && start === (reads[i - 1]?.[1] ?? 8))).toBe(true)
    expect(device.mostUnflushed).toBeLessThanOrEqual(72 * MiB)
    expect(device.flushes).toBeGreaterThanOrEqual(3)
    expect(mostReads()).toBe(2)
  })

  test('stop between chunks when aborted, and free what they made', async () => {
    const reason = new Error('enough')
    const controller = new AbortController()
    let reads = 0
    const { checkpoint: zeros } = sourceOf([100], () => ++reads === 3 && controller.abort(reason))
    const device = new FakeDevice()
    const weights = new Weights(zeros, device, same)
    const kept = weights.matrix('t0', [100, MiB / 2])
    await expect(weights.stream({ signal: controller.signal })).rejects.toBe(reason)
    expect(reads).toBeLessThan(6)
    expect(device.released).toEqual([kept])
    expect(device.memory.size).toBe(0)
  })

  test('are cut where every format has a multiple of 4 bytes', () => {
    const stored = (name: string, begin: number, end: number): StoredTensor => ({
      name,
      dtype: 'BF16',
      shape: [],
      file: 'f',
      begin,
      end,
    })
    const tensors = [stored('x', 13, 19), stored('y', 19, 19 + 20 * MiB + 2), stored('z', 40 * MiB, 40 * MiB + 4)]
    const chunks = planChunks(tensors)
    const covered = new Map<string, number>()
    for (const chunk of chunks) {
      expect(chunk.end - chunk.begin).toBeLessThanOrEqual(8 * MiB)
      for (const { tensor: t, offset, bytes, at } of chunk.pieces) {
        expect(offset).toBe(covered.get(t.name) ?? 0)
        expect(offset % 8).toBe(0)
        expect(chunk.begin + at).toBe(t.begin + offset)
        covered.set(t.name, offset + bytes)
      }
    }
    expect([...covered]).toEqual(tensors.map((t) => [t.name, t.end - t.begin]))
    expect(chunks.at(-1)!.begin).toBe(40 * MiB) // a gap is not read
  })
})

describe('what does not fit is an error, and frees what was made', () => {
  const declared = async (wrong: (weights: Weights) => unknown) => {
    const device = new FakeDevice()
    const weights = new Weights(await checkpoint([...entries, { ...f32('ids', [1], [0]), dtype: 'I32' }]), device, same)
    const kept = weights.matrix('a', [2, 2])
    let error: unknown
    try {
      await wrong(weights)
    } catch (thrown) {
      error = thrown
    }
    expect(error).toBeDefined()
    expect(device.released).toContain(kept)
    expect(device.memory.size).toBe(0)
    return error
  }
  test.each<[string, (w: Weights) => unknown, object]>([
    [
      'a missing tensor',
      (w) => w.matrix('nothing', [1]),
      { code: 'missing', message: expect.stringMatching(/has no tensor nothing/) },
    ],
    [
      'another shape',
      (w) => w.matrix('b', [2, 3]),
      { code: 'shape', message: expect.stringMatching(/b has shape \[3,2\], expected \[2,3\]/) },
    ],
    ['another rank', (w) => w.vector('b', [6]), { name: 'WeightsError', code: 'shape' }],
    [
      'integers',
      (w) => w.matrix('ids', [1]),
      { code: 'unsupported', message: expect.stringMatching(/ids has dtype I32/) },
    ],
    ['integers in a table', (w) => w.rows('ids', [1, 1]), { name: 'WeightsError' }],
    ['a table that is no matrix', (w) => w.rows('odd', [3]), { name: 'ShapeError' }],
    ['an integer format', (w) => w.matrix('b', [3, 2], 'u32'), { name: 'ShapeError' }],
    [
      'an unused tensor',
      (w) => w.stream(),
      { code: 'unsupported', message: expect.stringMatching(/has 4 tensors .*\(odd, b, c, ids\)/) },
    ],
    ['an aborted load', (w) => w.stream({ signal: AbortSignal.abort(new Error('x')) }), { message: 'x' }],
  ])('%s', async (_, wrong, error) => {
    expect(await declared(wrong)).toMatchObject(error)
  })
  test('parts of odd length cannot lie one above another', async () => {
    const odd = [half('x', 'F16', [1, 1], [0x3c00]), half('y', 'F16', [1, 1], [0x3c00])]
    const device = new FakeDevice()
    const weights = new Weights(await checkpoint(odd), device, same)
    expect(() =>
      weights.stack(
        's',
        [
          { name: 'x', rows: 1 },
          { name: 'y', rows: 1 },
        ],
        1,
      ),
    ).toThrow(/y begins at byte 2/)
    expect(device.memory.size).toBe(0)
  })
  test('at most five unused tensors are named', async () => {
    const many = Array.from({ length: 7 }, (_, i) => f32(`t${i}`, [1], [0]))
    const weights = new Weights(await checkpoint(many), new FakeDevice(), same)
    await expect(weights.stream()).rejects.toThrow(
      /has 7 tensors that the model does not use \(t0, t1, t2, t3, t4, \.\.\.\)/,
    )
  })
  test('two stored names for one', async () => {
    const opened = await checkpoint([f32('model.a', [1], [0]), f32('a', [1], [0])])
    const rename = (name: string) => name.replace('model.', '')
    expect(() => new Weights(opened, new FakeDevice(), { ...same, rename })).toThrow(
      /model\.a and a are both a|a and model\.a are both a/,
    )
  })
  test('a value that f16 cannot hold names its tensor', async () => {
    const device = new FakeDevice()
    const weights = new Weights(await checkpoint([f32('big', [2], [1, 1e6])]), device, f16)
    weights.matrix('big', [2])
    await expect(weights.stream()).rejects.toMatchObject({
      code: 'overflow',
      message: expect.stringMatching(/^big: .* 1000000 /),
    })
    expect(device.memory.size).toBe(0)
  })
  test('a device that turns out to be full is heard before anything is brought', async () => {
    const opened = await checkpoint(entries)
    const source = { ...opened.source, prepare: () => Promise.reject(new Error('not to be called')) }
    const device = new FakeDevice()
    const weights = new Weights({ ...opened, source }, device, same)
    weights.matrix('a', [2, 2])
    weights.matrix('b', [3, 2], 'f32')
    weights.ignore((name) => name === 'c' || name === 'odd')
    expect(weights.deviceBytes).toBe(16 + 24)
    device.flush = () => Promise.reject(new DeviceError('memory', 'allocate b, 24 bytes: full'))
    await expect(weights.stream()).rejects.toThrow(
      new DeviceError('memory', '1 files: needs 40 bytes on the device for its weights; allocate b, 24 bytes: full'),
    )
    expect(device.memory.size).toBe(0)
  })
  test('a device that is full', async () => {
    const device = new FakeDevice()
    const weights = new Weights(await checkpoint(entries), device, same)
    weights.matrix('a', [2, 2])
    device.keep = () => {
      throw new DeviceError('memory', 'full')
    }
    expect(() => weights.matrix('b', [3, 2])).toThrow('full')
    expect(device.memory.size).toBe(0)
  })
})
