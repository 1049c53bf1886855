/** A decoded image: rows from the top, each pixel three bytes, red, green, blue. */
export interface RgbImage {
  readonly width: number
  readonly height: number
  readonly data: Uint8Array // width · height · 3
}

/** Four bytes a pixel, the fourth being opacity, as canvases have them; composited on white. */
export function rgbOnWhite(rgba: Uint8Array | Uint8ClampedArray, width: number, height: number): RgbImage {
  const data = new Uint8Array(width * height * 3)
  for (let from = 0, to = 0; to < data.length; from += 4) {
    const opacity = rgba[from + 3]!
    for (let channel = 0; channel < 3; channel++, to++)
      data[to] = Math.round((rgba[from + channel]! * opacity + 255 * (255 - opacity)) / 255)
  }
  return { width, height, data }
}
