import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Command } from 'commander'
import type { ImageOf } from '../apps/decider/images.ts'
import { readDataUrl } from '../media/data_url.ts'
import { integer } from './host.ts'

/** What the help says of `image`. Paths are not confined: whoever runs the command chose the rows. */
export const IMAGE_HELP = 'an image is a data URL, or a path from the folder of the rows, which may lead anywhere'

/** The image that a row of the file `rows` names by its path from there; undefined for a URL. */
export const imageFile = (rows: string, where: string): URL | undefined =>
  /^[a-z]{2,}:/i.test(where) ? undefined : pathToFileURL(resolve(rows, '..', where))

/** Opens the images that the rows of a file name: files and data URLs. */
export const imagesBeside =
  (rows: string): ImageOf =>
  (where) =>
    imageFile(rows, where) ?? readDataUrl(where)

export interface ImageFlags {
  readonly maxPixels: number
}

/** Adds what commands that show images have in common. */
export const addImageFlags = (command: Command): Command =>
  command.option('--max-pixels <n>', 'at how many pixels an image is read at most', integer(1), 2 ** 20)
