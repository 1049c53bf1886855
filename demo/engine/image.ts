import type { DecideOptions } from '../../src/index.ts'

/** Options that show an image before the text. */
export const withImage = (options: DecideOptions, image: Blob | undefined): DecideOptions => ({
  ...options,
  ...(image && { image }),
})
