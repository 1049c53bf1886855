import { type ImageInput, readImage } from '../../../src/media/image.ts'

// Reads files as a page does. The test gives and takes plain lists.

const listed = async (image: ImageInput) => {
  try {
    const { width, height, data } = await readImage(image)
    return { width, height, data: [...data] }
  } catch (error) {
    return `${error}`
  }
}

/** What of a page can be read, made of a file's first frame. */
async function held(file: Blob): Promise<Record<string, ImageInput>> {
  const bitmap = await createImageBitmap(file)
  const canvas = document.createElement('canvas')
  canvas.width = bitmap.width
  canvas.height = bitmap.height
  const context = canvas.getContext('2d')!
  context.drawImage(bitmap, 0, 0)
  const offscreen = new OffscreenCanvas(bitmap.width, bitmap.height)
  offscreen.getContext('2d')!.drawImage(bitmap, 0, 0)
  const pixels = context.getImageData(0, 0, bitmap.width, bitmap.height)
  return { ImageBitmap: bitmap, HTMLCanvasElement: canvas, OffscreenCanvas: offscreen, ImageData: pixels }
}

Object.assign(globalThis, {
  readFile: (bytes: number[]) => listed(Uint8Array.from(bytes)),
  async readHeld(bytes: number[]) {
    const images = await held(new Blob([Uint8Array.from(bytes)]))
    const read = Object.entries(images).map(async ([name, image]) => [name, await listed(image)] as const)
    return Object.fromEntries(await Promise.all(read))
  },
})
document.title = 'ready'
