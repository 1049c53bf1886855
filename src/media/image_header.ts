/** What the first bytes of an image file say of it. */
export interface ImageHeader {
  readonly format: 'png' | 'jpeg' | 'webp' | 'gif'
  readonly width: number
  readonly height: number
}

/**
 * Format and size of a PNG, JPEG, WebP or GIF file, without decoding anything; undefined for what is none of them or ends
 * before its size. PNG 1.2 section 11.2.2, ITU T.81 B.2.2, RFC 9649, GIF89a section 18.
 */
export function imageHeader(bytes: Uint8Array): ImageHeader | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  try {
    return png(view) ?? jpeg(view) ?? webp(view) ?? gif(view)
  } catch (error) {
    if (error instanceof RangeError) return undefined // read past the end
    throw error
  }
}

const text = (view: DataView, at: number, length: number): string =>
  String.fromCharCode(...Array.from({ length }, (_, i) => view.getUint8(at + i)))

function png(view: DataView): ImageHeader | undefined {
  if (view.getUint32(0) !== 0x89504e47 || view.getUint32(4) !== 0x0d0a1a0a) return undefined
  if (text(view, 12, 4) !== 'IHDR') return undefined
  return { format: 'png', width: view.getUint32(16), height: view.getUint32(20) }
}

/** Goes from one marker to the next until a frame begins. */
function jpeg(view: DataView): ImageHeader | undefined {
  if (view.getUint16(0) !== 0xffd8) return undefined
  for (let at = 2; ; ) {
    if (view.getUint8(at) !== 0xff) return undefined
    const marker = view.getUint8(at + 1)
    if (marker === 0xff)
      at++ // fill
    else if (isFrame(marker)) return { format: 'jpeg', height: view.getUint16(at + 5), width: view.getUint16(at + 7) }
    else if (marker === 0xda || marker === 0xd9)
      return undefined // pixels, or the end, without a frame
    else if (marker === 0x01 || (marker >= 0xd0 && marker <= 0xd7))
      at += 2 // no length
    else at += 2 + Math.max(2, view.getUint16(at + 2))
  }
}

/** SOF0 to SOF15 but for tables and extensions that lie between them. */
const isFrame = (marker: number): boolean =>
  marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc

function webp(view: DataView): ImageHeader | undefined {
  if (text(view, 0, 4) !== 'RIFF' || text(view, 8, 4) !== 'WEBP') return undefined
  const of = (width: number, height: number): ImageHeader => ({ format: 'webp', width, height })
  const chunk = text(view, 12, 4)
  if (chunk === 'VP8X') {
    const side = (at: number): number => 1 + view.getUint16(at, true) + 65536 * view.getUint8(at + 2)
    return of(side(24), side(27))
  }
  if (chunk === 'VP8L') {
    if (view.getUint8(20) !== 0x2f) return undefined
    const bits = view.getUint32(21, true)
    return of(1 + (bits & 0x3fff), 1 + ((bits >>> 14) & 0x3fff))
  }
  if (chunk !== 'VP8 ' || view.getUint16(23) !== 0x9d01 || view.getUint8(25) !== 0x2a) return undefined
  return of(view.getUint16(26, true) & 0x3fff, view.getUint16(28, true) & 0x3fff)
}

function gif(view: DataView): ImageHeader | undefined {
  if (!/^GIF8[79]a$/.test(text(view, 0, 6))) return undefined
  return { format: 'gif', width: view.getUint16(6, true), height: view.getUint16(8, true) }
}
