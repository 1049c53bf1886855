import type { PatchGrid, ProcessedImage } from './processor.ts'

/**
 * An image that was given ids: its tokens are `first`, `first` + 1 and so on, beyond the vocabulary, so that rows about
 * the same image begin alike and rows about others do not.
 */
export interface SeenImage extends ProcessedImage {
  readonly first: number
  readonly tokens: number
}

export interface Album {
  /** The same pixels get the same ids, as long as few other images come in between. */
  see(image: ProcessedImage): SeenImage
}

/** Ids from the vocabulary's end on; `merge`: patches of a token's side. */
export function createAlbum(vocabulary: number, merge: number): Album {
  const seen: SeenImage[] = [] // least recently seen first
  let next = vocabulary
  return {
    see(image) {
      const known = seen.findIndex((other) => samePixels(other, image))
      if (known >= 0) seen.push(...seen.splice(known, 1))
      else {
        const tokens = tokensOf(image, merge)
        seen.push({ ...image, first: next, tokens })
        next += tokens
      }
      if (seen.length > REMEMBERED) seen.shift()
      return seen.at(-1)!
    },
  }
}
const REMEMBERED = 16

export const tokensOf = ({ rows, columns }: PatchGrid, merge: number): number => (rows * columns) / merge ** 2

function samePixels(a: ProcessedImage, b: ProcessedImage): boolean {
  if (a.rows !== b.rows || a.columns !== b.columns) return false
  const [left, right] = [a.pixels.data, b.pixels.data]
  for (let i = 0; i < left.length; i++) if (left[i] !== right[i]) return false
  return true
}
