import { readFile } from 'node:fs/promises'
import { readImage } from '../../src/media/image.ts'

// An image in Deno, which has canvases and cannot draw on them: the package sharp decodes.

const { width, height, data } = await readImage(await readFile(process.argv[2]!))
console.log(width, height, [...data.subarray(0, 3)].join())
