import { type Load, load } from './load.ts'

addEventListener('message', ({ data }: MessageEvent<Load & { plain?: boolean }>) => {
  if (data.plain) Reflect.deleteProperty(FileSystemFileHandle.prototype, 'createWritable') // as in Safari
  load(data).then(postMessage, (error: Error) => postMessage({ error: error.message }))
})
