import { InputError } from '../errors.ts'
import { imageHeader } from './image_header.ts'
import { type RgbImage, rgbOnWhite } from './pixels.ts'

/** Larger images are refused before anything is decoded: 2^26 pixels take 256 MiB. */
export const MOST_PIXELS = 2 ** 26

/**
 * The pixels of a PNG, JPEG, WebP or GIF file: turned as its EXIF orientation says, on white, of an animation the first
 * frame, without colour management. A page decodes as its browser does; elsewhere the package sharp does.
 *
 * @throws InputError for a file that cannot be read, that is too large, or that there is no decoder for
 */
export async function decodeImage(file: Uint8Array): Promise<RgbImage> {
  const header = imageHeader(file)
  if (!header)
    throw new InputError(
      'image: the file is no PNG, JPEG, WebP or GIF, or ends before its size; convert it or send it again',
    )
  checkSize(header)
  const decode = canDraw() ? decodeByBrowser : decodeBySharp
  try {
    return await decode(file)
  } catch (cause) {
    if (cause instanceof InputError) throw cause
    const reason = (cause as Error).message
    throw new InputError(`image: the ${header.format.toUpperCase()} file cannot be decoded: ${reason}`, 'input', {
      cause,
    })
  }
}

/** Throws InputError for an image without pixels, or of too many. */
export function checkSize({ width, height }: { readonly width: number; readonly height: number }): void {
  const whole = [width, height].every((side) => Number.isSafeInteger(side) && side > 0)
  if (!whole) throw new InputError(`image: has ${width} x ${height} pixels, expected at least one`)
  if (width * height > MOST_PIXELS)
    throw new InputError(`image: has ${width} x ${height} pixels, expected at most ${MOST_PIXELS}; make it smaller`)
}

/** Deno has canvases on which nothing can be drawn. */
export function canDraw(): boolean {
  try {
    return new OffscreenCanvas(1, 1).getContext('2d') !== null
  } catch {
    return false
  }
}

async function decodeByBrowser(file: Uint8Array): Promise<RgbImage> {
  const bitmap = await createImageBitmap(new Blob([file as Uint8Array<ArrayBuffer>]), {
    colorSpaceConversion: 'none',
    premultiplyAlpha: 'none',
    imageOrientation: 'from-image',
  })
  try {
    return pixelsOf(bitmap)
  } finally {
    bitmap.close()
  }
}

/** The pixels of what a canvas can draw. */
export function pixelsOf(drawable: ImageBitmap | HTMLCanvasElement | OffscreenCanvas): RgbImage {
  const { width, height } = drawable
  checkSize(drawable)
  const context = new OffscreenCanvas(width, height).getContext('2d', { willReadFrequently: true, alpha: false })
  if (!context) throw new InputError(`image: no canvas of ${width} x ${height} pixels; make the image smaller`)
  context.fillStyle = '#fff'
  context.fillRect(0, 0, width, height)
  context.drawImage(drawable, 0, 0)
  return rgbOnWhite(context.getImageData(0, 0, width, height).data, width, height)
}

async function decodeBySharp(file: Uint8Array): Promise<RgbImage> {
  const { default: sharp } = await import('sharp').catch((cause: Error) => {
    const what = 'image: outside of a page files are decoded by the package sharp, which does not load'
    throw new InputError(`${what}: npm i sharp, or pass pixels`, 'unsupported', { cause })
  })
  const { data, info } = await sharp(file, { failOn: 'error', limitInputPixels: MOST_PIXELS, ignoreIcc: true })
    .autoOrient()
    .toColourspace('srgb') // of grey and of CMYK, and of 16 bits the upper 8
    .ensureAlpha()
    .raw({ depth: 'uchar' })
    .toBuffer({ resolveWithObject: true })
  return rgbOnWhite(data, info.width, info.height)
}
