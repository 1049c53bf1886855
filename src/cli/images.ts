import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Command } from 'commander'
import type { ImageOf } from '../apps/decider/images.ts'
import { readDataUrl } from '../media/data_url.ts'
import { integer } from './host.ts'

/** Opens the images that the rows of a file name: data URLs, and files by their paths from its folder. */
export const imagesBeside =
  (path: string): ImageOf =>
  (where) =>
    /^[a-z]{2,}:/i.test(where) ? readDataUrl(where) : pathToFileURL(resolve(path, '..', where))

export interface ImageFlags {
  readonly maxPixels: number
}

/** Adds what commands that show images have in common. */
export const addImageFlags = (command: Command): Command =>
  command.option('--max-pixels <n>', 'at how many pixels an image is read at most', integer(1), 2 ** 20)
