import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import fc from 'fast-check'
import sharp, { type Sharp } from 'sharp'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { InputError } from '../../src/errors.ts'
import { readImage } from '../../src/media/image.ts'
import { imageHeader } from '../../src/media/image_header.ts'
import type { RgbImage } from '../../src/media/pixels.ts'

const [WIDTH, HEIGHT] = [24, 16]
/** Four quarters of a colour each: red, green; blue, grey. */
const quarters: RgbImage = {
  width: WIDTH,
  height: HEIGHT,
  data: Uint8Array.from({ length: 3 * WIDTH * HEIGHT }, (_, i) => {
    const [x, y] = [Math.floor(i / 3) % WIDTH, Math.floor(i / 3 / WIDTH)]
    const quarter = (x < WIDTH / 2 ? 0 : 1) + (y < HEIGHT / 2 ? 0 : 2)
    return [
      [200, 20, 20],
      [20, 200, 20],
      [20, 20, 200],
      [90, 90, 90],
    ][quarter]![i % 3]!
  }),
}
const picture = () => sharp(quarters.data, { raw: { width: WIDTH, height: HEIGHT, channels: 3 } })
const solid = (background: object, width = 8, height = 8) =>
  sharp({ create: { width, height, channels: 4, background } as never })
const pixel = ({ data, width }: RgbImage, x: number, y: number) => [
  ...data.subarray(3 * (y * width + x), 3 * (y * width + x) + 3),
]

const files: Record<string, { bytes: Uint8Array; drift: number }> = {}
beforeAll(async () => {
  const add = async (name: string, image: Sharp, drift: number) => {
    files[name] = { bytes: await image.toBuffer(), drift }
  }
  await add('png', picture().png(), 0)
  await add('palette png', picture().png({ palette: true }), 0)
  await add('interlaced png', picture().png({ progressive: true }), 0)
  await add('16 bit png', picture().toColourspace('rgb16').png(), 0)
  await add('jpeg', picture().jpeg({ quality: 100, chromaSubsampling: '4:4:4' }), 4)
  await add('progressive jpeg', picture().jpeg({ quality: 100, chromaSubsampling: '4:4:4', progressive: true }), 4)
  await add('lossless webp', picture().webp({ lossless: true }), 0)
  await add('lossy webp', picture().webp({ quality: 100 }), 8)
  await add('gif', picture().gif(), 8)
})

describe('files', () => {
  test.each([
    'png',
    'palette png',
    'interlaced png',
    '16 bit png',
    'jpeg',
    'progressive jpeg',
    'lossless webp',
    'lossy webp',
    'gif',
  ])('%s', async (name) => {
    const { bytes, drift } = files[name]!
    expect(imageHeader(bytes)).toEqual({ format: name.split(' ').at(-1), width: WIDTH, height: HEIGHT })
    const read = await readImage(bytes)
    expect(read).toMatchObject({ width: WIDTH, height: HEIGHT })
    if (drift === 0) expect(read).toEqual(quarters)
    for (const [x, y] of [6, 18].flatMap(
      (x) =>
        [
          [x, 4],
          [x, 12],
        ] as const,
    )) // edges between colours are blurred
      pixel(read, x, y).forEach((v, i) => expect(Math.abs(v - pixel(quarters, x, y)[i]!)).toBeLessThanOrEqual(drift))
  })

  test('every EXIF orientation is turned upright', async () => {
    for (let orientation = 1; orientation <= 8; orientation++) {
      const bytes = await picture()
        .withMetadata({ orientation })
        .jpeg({ quality: 100, chromaSubsampling: '4:4:4' })
        .toBuffer()
      const read = await readImage(bytes)
      const turned = orientation > 4
      expect([read.width, read.height]).toEqual(turned ? [HEIGHT, WIDTH] : [WIDTH, HEIGHT])
      const [x, y] = [turned ? HEIGHT : WIDTH, turned ? WIDTH : HEIGHT].map((n) => [0, n - 1])
      const corners = y!.flatMap((row) => x!.map((column) => pixel(read, column, row)))
      const names = corners.map(([r, g, b]) => (r! > 150 ? 'R' : g! > 150 ? 'G' : b! > 150 ? 'B' : '-')).join('')
      expect(names).toBe(['RGB-', 'GR-B', '-BGR', 'B-RG', 'RBG-', 'BR-G', '-GBR', 'G-RB'][orientation - 1])
    }
  })

  test('what is not opaque lies on white', async () => {
    const half = await solid({ r: 0, g: 100, b: 200, alpha: 0.5 }).png().toBuffer()
    expect(pixel(await readImage(half), 3, 3)).toEqual([127, 177, 227])
    const clear = await solid({ r: 0, g: 0, b: 0, alpha: 0 }).webp({ lossless: true }).toBuffer()
    expect(pixel(await readImage(clear), 3, 3)).toEqual([255, 255, 255])
  })

  test('grey, grey of 16 bits, and CMYK', async () => {
    const grey = await picture().greyscale().toColourspace('b-w').png().toBuffer()
    const [r, g, b] = pixel(await readImage(grey), 20, 12)
    expect([r, g]).toEqual([g, b])
    expect(Math.abs(r! - 90)).toBeLessThanOrEqual(1)
    const deep = await picture().greyscale().toColourspace('grey16').png().toBuffer()
    expect(Math.abs(pixel(await readImage(deep), 20, 12)[0]! - 90)).toBeLessThanOrEqual(2)
    const cmyk = await solid({ r: 255, g: 255, b: 255, alpha: 1 }).removeAlpha().toColourspace('cmyk').jpeg().toBuffer()
    expect((await sharp(cmyk).metadata()).space).toBe('cmyk')
    expect(Math.min(...pixel(await readImage(cmyk), 3, 3))).toBeGreaterThan(245)
  })

  test('of an animation the first frame', async () => {
    const frames = Buffer.concat(
      [
        [9, 200, 9],
        [200, 9, 9],
      ].map((rgb) => Buffer.alloc(3 * 64, Uint8Array.from(rgb))),
    )
    const film = () => sharp(frames, { raw: { width: 8, height: 16, channels: 3, pageHeight: 8 } })
    for (const bytes of [await film().webp({ lossless: true }).toBuffer(), await film().gif().toBuffer()]) {
      expect((await sharp(bytes).metadata()).pages).toBe(2)
      const read = await readImage(bytes)
      expect([read.width, read.height]).toEqual([8, 8])
      expect(pixel(read, 4, 4)[1]).toBeGreaterThan(190)
    }
  })
})

describe('whatever holds an image', () => {
  const folder = mkdtempSync(join(tmpdir(), 'pronounce-'))
  const server = createServer((request, response) => {
    if (request.url === '/ok.png') response.end(files.png!.bytes)
    else if (request.url === '/endless') {
      const more = (): void => {
        while (!response.destroyed && response.write(Buffer.alloc(2 ** 20)));
        if (!response.destroyed) response.once('drain', more)
      }
      more()
    } else response.writeHead(404).end()
  })
  let origin = ''
  beforeAll(async () => {
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  afterAll(() => {
    server.closeAllConnections()
    server.close()
    rmSync(folder, { recursive: true })
  })

  test('bytes, a Blob, pixels and a URL', async () => {
    const { bytes } = files.png!
    const path = join(folder, 'ok.png')
    writeFileSync(path, bytes)
    const own = Uint8Array.from(bytes)
    const rgba = Uint8ClampedArray.from({ length: 4 * WIDTH * HEIGHT }, (_, i) =>
      i % 4 === 3 ? 255 : quarters.data[3 * Math.floor(i / 4) + (i % 4)]!,
    )
    for (const image of [
      own,
      own.buffer,
      new Blob([own]),
      { width: WIDTH, height: HEIGHT, data: rgba },
      quarters,
      pathToFileURL(path),
      new URL(`${origin}/ok.png`),
      new URL(`data:image/png;base64,${Buffer.from(bytes).toString('base64')}`),
    ])
      expect(await readImage(image)).toEqual(quarters)
  })

  test('what is none is refused', async () => {
    for (const [image, message] of [
      ['a.png', 'image: is String'],
      [null, 'image: is Null'],
      [{}, 'image: is Object'],
      [{ width: 3, height: 4 }, 'image: is Object'],
      [{ width: 3, height: 4, data: new Uint8Array(12) }, '3 x 4 pixels have 12 bytes'],
      [{ width: 0, height: 4, data: new Uint8Array() }, '0 x 4 pixels, expected at least one'],
      [{ width: 1.5, height: 2, data: new Uint8Array(12) }, '1.5 x 2 pixels'],
      [new Uint8Array(), 'is no PNG, JPEG, WebP or GIF'],
      [new URL(`${origin}/none.png`), 'the server answers 404'],
      [pathToFileURL(join(folder, 'none.png')), 'none.png cannot be read'],
      [new URL(`${origin}/endless`), 'expected at most 67108864'],
      [new URL('data:,hello'), 'is no PNG, JPEG, WebP or GIF'],
    ] as const) {
      const reading = readImage(image as never)
      await expect(reading).rejects.toThrow(InputError)
      await expect(reading).rejects.toThrow(message)
    }
  })

  test('without a decoder files are refused, and pixels are read', async () => {
    vi.resetModules()
    vi.doMock('sharp', () => {
      throw new Error('not installed')
    })
    const alone = await import('../../src/media/image.ts')
    await expect(alone.readImage(files.png!.bytes)).rejects.toMatchObject({
      code: 'unsupported',
      message: expect.stringContaining('npm i sharp, or pass pixels'),
    })
    expect(await alone.readImage(quarters)).toEqual(quarters)
    vi.doUnmock('sharp')
  })

  test('the signal is heard', async () => {
    const signal = AbortSignal.abort(new Error('enough'))
    await expect(readImage(new URL(`${origin}/ok.png`), signal)).rejects.toThrow('enough')
    await expect(readImage(quarters, signal)).rejects.toThrow('enough')
  })
})

describe('hostile files', () => {
  const u16 = (n: number) => [n >> 8, n & 255]
  const u32 = (n: number) => [...u16(n >>> 16), ...u16(n & 65535)]
  const ascii = (text: string) => [...text].map((c) => c.charCodeAt(0))
  const jpegOf = (...segments: number[][]) => Uint8Array.from([0xff, 0xd8, ...segments.flat()])
  const frame = (width: number, height: number) => [
    0xff,
    0xc0,
    ...u16(11),
    8,
    ...u16(height),
    ...u16(width),
    1,
    1,
    0x11,
    0,
  ]
  const bombs: Record<string, Uint8Array> = {
    png: Uint8Array.from([
      0x89,
      ...ascii('PNG\r\n\x1a\n'),
      ...u32(13),
      ...ascii('IHDR'),
      ...u32(50_000),
      ...u32(50_000),
      8,
      2,
      0,
      0,
      0,
    ]),
    jpeg: jpegOf([0xff, 0xe0, ...u16(4), 0, 0], [0xff, 0xff], frame(65_535, 65_535)),
    'lossless webp': Uint8Array.from([
      ...ascii('RIFF'),
      0,
      0,
      0,
      0,
      ...ascii('WEBPVP8L'),
      0,
      0,
      0,
      0,
      0x2f,
      0xff,
      0xff,
      0xff,
      0x0f,
      0,
    ]),
    'extended webp': Uint8Array.from([
      ...ascii('RIFF'),
      0,
      0,
      0,
      0,
      ...ascii('WEBPVP8X'),
      ...Array(8).fill(0),
      ...Array(6).fill(0xff),
    ]),
    gif: Uint8Array.from([...ascii('GIF89a'), 255, 255, 255, 255, 0, 0, 0]),
  }
  test.each(Object.keys(bombs))('a %s of too many pixels is refused by its header', async (name) => {
    const { width, height } = imageHeader(bombs[name]!)!
    await expect(readImage(bombs[name]!)).rejects.toThrow(`image: has ${width} x ${height} pixels, expected at most`)
  })

  test('a JPEG whose markers lead nowhere has no size', () => {
    expect(imageHeader(jpegOf([0xff, 0xe0, ...u16(0)], [0xff, 0xda]))).toBeUndefined()
    expect(imageHeader(jpegOf([0xff, 0xe0, ...u16(60_000)]))).toBeUndefined()
    expect(imageHeader(jpegOf([0xff, 0xd9]))).toBeUndefined()
    expect(imageHeader(jpegOf([7, 7]))).toBeUndefined()
  })

  /** Pixels, or an InputError; nothing else, and soon. */
  async function survives(bytes: Uint8Array): Promise<void> {
    try {
      const { width, height, data } = await readImage(bytes)
      expect(data).toHaveLength(3 * width * height)
    } catch (error) {
      expect(error).toBeInstanceOf(InputError)
      expect((error as Error).message).toMatch(/^image: /)
    }
  }
  const anyFile = fc.constantFrom(
    'png',
    'palette png',
    '16 bit png',
    'jpeg',
    'progressive jpeg',
    'lossless webp',
    'lossy webp',
    'gif',
  )
  const share = fc.double({ min: 0, max: 1, noNaN: true })

  test('files that end early', async () => {
    await fc.assert(
      fc.asyncProperty(anyFile, share, async (name, part) => {
        const { bytes } = files[name]!
        await survives(bytes.slice(0, Math.floor(part * bytes.length)))
      }),
      { numRuns: 150 },
    )
    for (const name of ['png', 'jpeg', 'lossless webp']) {
      const { bytes } = files[name]!
      await expect(readImage(bytes.slice(0, 0.8 * bytes.length)), name).rejects.toThrow('cannot be decoded')
    }
  })

  test('files with other bytes in them', async () => {
    const changes = fc.array(fc.tuple(share, fc.integer({ min: 0, max: 255 })), { minLength: 1, maxLength: 8 })
    await fc.assert(
      fc.asyncProperty(anyFile, changes, async (name, changes) => {
        const bytes = Uint8Array.from(files[name]!.bytes)
        for (const [at, byte] of changes) bytes[Math.floor(at * (bytes.length - 1))] = byte
        await survives(bytes)
      }),
      { numRuns: 150 },
    )
  })

  test('anything at all, behind the first bytes of a format or not', async () => {
    const starts = [
      [],
      [0x89, ...ascii('PNG\r\n\x1a\n')],
      [0xff, 0xd8, 0xff],
      [...ascii('RIFF0000WEBPVP8 ')],
      ascii('GIF89a'),
    ]
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...starts), fc.uint8Array({ maxLength: 64 }), async (start, rest) => {
        await survives(Uint8Array.from([...start, ...rest]))
      }),
      { numRuns: 150 },
    )
  })
})
