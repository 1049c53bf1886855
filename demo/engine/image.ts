import type { DecideOptions } from '../../src/index.ts'

/** Options that show an image before the text. */
export function withImage(options: DecideOptions, image: Blob | undefined): DecideOptions {
  if (image) throw new Error('image: the models here read text only; remove the image')
  return options
}
