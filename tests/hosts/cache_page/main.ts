import { type Load, load, openCache } from './load.ts'

// Loads through the cache of the site, in the page itself or in a worker, as the test asks.

function loadInWorker(task: Load & { plain?: boolean }): ReturnType<typeof load> {
  const worker = new Worker(new URL('worker.ts', import.meta.url), { type: 'module' })
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => ('error' in data ? reject(new Error(data.error)) : resolve(data))
    worker.onerror = ({ message }) => reject(new Error(message))
    worker.postMessage(task)
  })
}

const harness = { load, loadInWorker, cache: openCache() }
export type Harness = typeof harness
Object.assign(globalThis, { harness })
