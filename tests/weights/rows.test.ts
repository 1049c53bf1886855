import { mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ShapeError } from '../../src/errors.ts'
import { type RowTable, Weights } from '../../src/weights/load.ts'
import { openCheckpoint, type StoredTensor } from '../../src/weights/safetensors.ts'
import { openSource, type Source } from '../../src/weights/source.ts'
import { blob, checkpoint, half, safetensors } from './build.ts'
import { FakeDevice, same } from './fake_device.ts'
import { filled } from '../../src/device/fill.ts'

const MiB = 2 ** 20
const bytesOf = async (rows: RowTable, ids: ArrayLike<number>) => filled(await rows.read(ids))

describe('a table of rows', () => {
  const bits = (rows: readonly number[]) => rows.flatMap((r) => [r, r + 1])
  const all = Array.from({ length: 10 }, (_, i) => i * 100)
  const table = [half('x', 'F16', [1], [7]), half('e', 'BF16', [10, 2], bits(all))]
  const u16 = (bytes: Uint8Array) => Array.from(new Uint16Array(bytes.slice().buffer))

  test('gives rows in the order asked for, as stored', async () => {
    const weights = new Weights(await checkpoint(table, 1), new FakeDevice(), same)
    const rows = weights.rows('e', [10, 2])
    weights.ignore((name) => name === 'x')
    expect(rows).toMatchObject({ rows: 10, width: 2, format: 'bf16', bytesPerRow: 4 })
    await expect(rows.read([0])).rejects.toThrow(/e: is not loaded/)
    await weights.stream()
    expect(u16(await bytesOf(rows, [9, 0, 3, 9]))).toEqual(bits([900, 0, 300, 900]))
    expect(u16(await bytesOf(rows, Uint32Array.of(1)))).toEqual(bits([100]))
    expect((await bytesOf(rows, [])).length).toBe(0)
    for (const bad of [-1, 10, 1.5, Number.NaN]) await expect(rows.read([0, bad])).rejects.toBeInstanceOf(ShapeError)
  })

  test('may be a matrix on the device too', async () => {
    const device = new FakeDevice()
    const weights = new Weights(await checkpoint(table.slice(1)), device, same)
    const rows = weights.rows('e', [10, 2])
    const matrix = weights.matrix('e', [10, 2])
    expect((await weights.stream()).bytes).toBe(40)
    expect(
      u16(
        await bytesOf(
          rows,
          all.map((_, i) => i),
        ),
      ),
    ).toEqual(device.u16(matrix))
  })

  describe('over 64 MiB on disk', () => {
    let folder = ''
    const [rowCount, width] = [70_000, 512] // 1 KiB a row
    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'pronounce-'))
      const header = JSON.stringify({
        e: { dtype: 'F16', shape: [rowCount, width], data_offsets: [0, rowCount * 1024] },
      })
      const start = 8 + header.length
      const file = await open(join(folder, 'model.safetensors'), 'w')
      const length = new Uint8Array(8)
      new DataView(length.buffer).setBigUint64(0, BigInt(header.length), true)
      await file.write(length, 0, 8, 0)
      await file.write(header, 8)
      await file.truncate(start + rowCount * 1024)
      for (let row = 0; row < rowCount; row += 100)
        await file.write(new Uint8Array(1024).fill(row / 100), 0, 1024, start + row * 1024)
      await file.close()
    })
    afterAll(() => rm(folder, { recursive: true }))

    async function openTable() {
      const disk = openSource(folder)
      const reads: number[] = []
      const source: Source = {
        ...disk,
        read(path, start, end, signal) {
          reads.push(end - start)
          return disk.read(path, start, end, signal)
        },
      }
      const weights = new Weights(await openCheckpoint(source), new FakeDevice(), same)
      const rows = weights.rows('e', [rowCount, width])
      reads.length = 0
      expect((await weights.stream()).bytes).toBe(0) // the table stays where it is
      return { rows, reads }
    }
    const firstBytes = (bytes: Uint8Array) => Array.from({ length: bytes.length / 1024 }, (_, i) => bytes[i * 1024])

    test('is read by rows: each once, neighbours together', async () => {
      const { rows, reads } = await openTable()
      expect(firstBytes(await bytesOf(rows, [69_900, 0, 100, 100, 20, 0]))).toEqual([699 % 256, 0, 1, 1, 0, 0])
      expect(reads).toEqual([21 * 1024, 1024, 1024]) // 0 to 20, then 100, then 69900: 79 KiB are too far
      reads.length = 0
      expect(firstBytes(await bytesOf(rows, [100, 69_900]))).toEqual([1, 699 % 256])
      expect(reads).toEqual([]) // remembered
      await expect(rows.read([rowCount])).rejects.toBeInstanceOf(ShapeError)
      const reason = new Error('enough')
      await expect(rows.read([5000], AbortSignal.abort(reason))).rejects.toBe(reason)
    })

    test('remembers 32 MiB, the rows used last', async () => {
      const { rows, reads } = await openTable()
      await rows.read([0, 60_000])
      await rows.read(Array.from({ length: 32 * 1024 - 1 }, (_, i) => i + 100))
      await rows.read([0]) // gone: it and 60000 were the oldest, and one had to go
      reads.length = 0
      await rows.read([60_000])
      expect(reads.length).toBe(1)
      reads.length = 0
      await rows.read([0, 32_000])
      expect(reads).toEqual([])
    })

    test('gives more rows at once than it remembers', async () => {
      const { rows, reads } = await openTable()
      const bytes = await bytesOf(
        rows,
        Array.from({ length: 40_000 }, (_, i) => i),
      )
      expect(firstBytes(bytes).every((value, i) => value === (i % 100 === 0 ? (i / 100) % 256 : 0))).toBe(true)
      expect(Math.max(...reads)).toBeLessThanOrEqual(8 * MiB)
    })
  })

  test('of a remote source is held in memory, however large', async () => {
    const disk = openSource({ 'model.safetensors': blob(safetensors(table)) })
    const size = 65 * MiB
    const stored: StoredTensor = {
      name: 'e',
      dtype: 'BF16',
      shape: [size / 1024, 512],
      file: 'f',
      begin: 8,
      end: 8 + size,
    }
    let reads = 0
    async function read(_: string, start: number, end: number): Promise<Uint8Array> {
      reads++
      return new Uint8Array(end - start)
    }
    const source: Source = { ...disk, remote: true, read }
    const weights = new Weights({ source, tensors: new Map([['e', stored]]), bytes: size }, new FakeDevice(), same)
    const rows = weights.rows('e', stored.shape)
    expect((await weights.stream()).bytes).toBe(size)
    expect(reads).toBe(9)
    await rows.read([0, size / 1024 - 1])
    expect(reads).toBe(9)
  })
})
