import type { SeenImage } from './album.ts'
import type { Positions } from './rope.ts'

/**
 * M-RoPE positions of a row: text counts on along all axes; the tokens of an image stay at one time while their height
 * and width count from there, and what follows begins after the longer side. `merge`: patches of a token's side.
 */
export function rowPositions(ids: readonly number[], images: readonly SeenImage[], merge: number): Positions {
  const [time, height, width] = [new Int32Array(ids.length), new Int32Array(ids.length), new Int32Array(ids.length)]
  let position = 0
  for (let at = 0; at < ids.length; ) {
    const image = images.find(({ first }) => first === ids[at])
    if (!image) {
      time[at] = height[at] = width[at] = position++
      at++
      continue
    }
    const [rows, columns] = [image.rows / merge, image.columns / merge]
    for (let row = 0; row < rows; row++)
      for (let column = 0; column < columns; column++, at++) {
        time[at] = position
        height[at] = position + row
        width[at] = position + column
      }
    position += Math.max(rows, columns)
  }
  return [time, height, width]
}

/** The positions of the tokens from `begin` on, up to `end`. */
export const positionsFrom = (positions: Positions, begin: number, end?: number): Positions => {
  const [time, height, width] = positions
  return [time.slice(begin, end), height.slice(begin, end), width.slice(begin, end)]
}
