import type { Remote } from './remote.ts'
import type { Source } from './source.ts'

/** Files below a URL, read by Range requests. */
export function httpSource(remote: Remote): Source {
  return {
    name: remote.name,
    remote: true,
    size: async (path, signal) => (await remote.stat(path, signal))?.bytes,
    async read(path, start, end, signal) {
      signal?.throwIfAborted()
      const bytes = new Uint8Array(end - start)
      let at = 0
      for await (const part of remote.transfer(path, start, end, { signal })) {
        bytes.set(part, at)
        at += part.length
      }
      return bytes
    },
  }
}
