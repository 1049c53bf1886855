import type { DecideOptions } from '../../src/index.ts'

const MAX_PIXELS = 2 ** 18 // answers come while one types

/** Options that show an image before the text. */
export const withImage = (options: DecideOptions, image: Blob | undefined): DecideOptions => ({
  ...options,
  ...(image && { image, maxPixels: MAX_PIXELS }),
})
