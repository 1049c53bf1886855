// The page's side of its service worker: what is kept for the times without a network.

const CACHE = 'pronounce-page'

/** Registers the service worker of the built page. What is large is kept when the page is at rest, unless data is dear. */
export async function startOffline(): Promise<void> {
  if (!import.meta.env.PROD || !('serviceWorker' in navigator)) return
  try {
    await navigator.serviceWorker.register('./service_worker.js')
  } catch {
    return // served without https, or refused: the page works as long as there is a network
  }
  const { connection } = navigator as { connection?: { readonly saveData: boolean } }
  if (!connection?.saveData) await keepOffline()
}

/** Keeps all of the page and of the models that come with it. */
export async function keepOffline(): Promise<void> {
  const { active } = await navigator.serviceWorker.ready
  active!.postMessage('keep')
}

/** Bytes that are kept; undefined where there is no service worker. */
export async function offlineBytes(): Promise<number | undefined> {
  if (!(await navigator.serviceWorker?.getRegistration())) return undefined
  if (!(await caches.has(CACHE))) return 0
  const cache = await caches.open(CACHE)
  const kept = await Promise.all((await cache.keys()).map(async (key) => (await cache.match(key))!.blob()))
  return kept.reduce((n, { size }) => n + size, 0)
}

/** Deletes the copies; what is used later is kept anew. */
export async function forgetOffline(): Promise<void> {
  await caches.delete(CACHE)
}
