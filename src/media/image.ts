import { InputError } from '../errors.ts'
import { canDraw, checkSize, decodeImage, pixelsOf } from './decode_image.ts'
import { type RgbImage, rgbOnWhite } from './pixels.ts'

/** Pixels as they are in ImageData: rows from the top, red, green, blue and opacity. */
export interface RgbaPixels {
  readonly width: number
  readonly height: number
  readonly data: Uint8ClampedArray | Uint8Array
}

/**
 * An image: the bytes of a PNG, JPEG, WebP or GIF file, or a Blob of them; decoded pixels of three or four bytes, ImageData
 * for example; what a canvas can draw; or a URL, which is fetched or read: never pass on one that somebody else chose.
 */
export type ImageInput =
  | Uint8Array
  | ArrayBuffer
  | Blob
  | RgbaPixels
  | RgbImage
  | ImageBitmap
  | HTMLCanvasElement
  | OffscreenCanvas
  | URL

/** Larger files are not read to their end. */
const MOST_BYTES = 64 * 2 ** 20

/**
 * The pixels of an image.
 *
 * @throws InputError for what is no image, cannot be read or is too large; the signal's reason
 */
export async function readImage(image: ImageInput, signal?: AbortSignal): Promise<RgbImage> {
  signal?.throwIfAborted()
  const read = await pixels(image, signal)
  signal?.throwIfAborted()
  return read
}

async function pixels(image: ImageInput, signal: AbortSignal | undefined): Promise<RgbImage> {
  if (image instanceof URL) return decodeImage(await download(image, signal))
  if (image instanceof Blob) return decodeImage(new Uint8Array(await small(image).arrayBuffer()))
  if (image instanceof ArrayBuffer) return decodeImage(new Uint8Array(image))
  if (image instanceof Uint8Array) return decodeImage(image)
  if (typeof image !== 'object' || image === null || !('width' in image)) throw unknown(image)
  if (!('data' in image)) {
    if (!canDraw()) throw unknown(image)
    return pixelsOf(image)
  }
  checkSize(image)
  const { width, height, data } = image
  if (data.length === 4 * width * height) return rgbOnWhite(data, width, height)
  if (data.length === 3 * width * height) return { width, height, data: Uint8Array.from(data) }
  throw new InputError(
    `image: ${width} x ${height} pixels have ${data.length} bytes, expected three or four for each pixel`,
  )
}

const unknown = (image: unknown): InputError => {
  const expected = 'expected the bytes of a file, a Blob, pixels, what a canvas draws, or a URL object'
  return new InputError(`image: is ${Object.prototype.toString.call(image).slice(8, -1)}, ${expected}`)
}

function small<Sized extends { readonly size: number }>(file: Sized): Sized {
  if (file.size <= MOST_BYTES) return file
  throw new InputError(`image: the file has ${file.size} bytes, expected at most ${MOST_BYTES}; make it smaller`)
}

async function download(url: URL, signal: AbortSignal | undefined): Promise<Uint8Array> {
  try {
    if (url.protocol === 'file:') {
      const { readFile, stat } = await import('node:fs/promises')
      small(await stat(url))
      return await readFile(url, { signal })
    }
    const response = await fetch(url, { signal: signal ?? null })
    if (!response.ok) throw new Error(`the server answers ${response.status}`)
    const parts: Uint8Array<ArrayBuffer>[] = []
    let size = 0
    for await (const part of response.body ?? []) {
      size += part.length
      parts.push(part)
      small({ size })
    }
    return new Uint8Array(await new Blob(parts).arrayBuffer())
  } catch (cause) {
    signal?.throwIfAborted()
    if (cause instanceof InputError) throw cause
    const where = url.protocol === 'data:' ? 'the data URL' : url.href
    throw new InputError(`image: ${where} cannot be read: ${(cause as Error).message}`, 'input', { cause })
  }
}
