import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Plugin } from 'vite'

const served = join(import.meta.dirname, '../public')
const SERVICE_WORKER = 'service_worker.js'

/**
 * What the built page may do; while developing, Vite needs more. Workers have no `meta`: whoever serves the site sends
 * their policy as a header (README), in which WebAssembly is allowed for the engine alone, where espeak-ng needs it.
 */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' blob: data:",
  "media-src 'self' blob:",
  "connect-src 'self'",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
].join('; ')

export const contentSecurityPolicy: Plugin = {
  name: 'content-security-policy',
  apply: 'build',
  transformIndexHtml: () => [
    { tag: 'meta', attrs: { 'http-equiv': 'Content-Security-Policy', content: policy }, injectTo: 'head-prepend' },
  ],
}

/** espeak-ng's dictionaries and program are part of the site, so its licence is too. */
export const licences: Plugin = {
  name: 'licences',
  apply: 'build',
  generateBundle() {
    const file = createRequire(import.meta.url).resolve('@echogarden/espeak-ng-emscripten/COPYING')
    this.emitFile({ type: 'asset', name: 'espeak-ng-COPYING.txt', source: readFileSync(file) })
  },
}

/** Tells the service worker all files of the site; models and espeak-ng's dictionaries are large and come late. */
export const offlineList: Plugin = {
  name: 'offline-list',
  apply: 'build',
  enforce: 'post',
  generateBundle: {
    order: 'post',
    handler(_, bundle) {
      const built = Object.values(bundle)
        .filter(({ fileName }) => fileName !== SERVICE_WORKER && !fileName.endsWith('.map'))
        .map((file) => ({ path: file.fileName, content: file.type === 'chunk' ? file.code : file.source }))
      const models = readdirSync(join(served, 'models'), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile() && !entry.name.endsWith('.md'))
        .map((entry) => join(entry.parentPath, entry.name))
        .map((file) => ({ path: file.slice(served.length + 1), content: readFileSync(file) }))
      const list = [...built, ...models].map(({ path, content }) => ({
        path,
        revision: createHash('sha256').update(content).digest('hex').slice(0, 12),
        late: /^models\/|espeak/.test(path),
      }))
      const worker = bundle[SERVICE_WORKER]
      if (worker?.type !== 'chunk') throw new Error(`${SERVICE_WORKER} is missing from the build`)
      worker.code = worker.code.replaceAll('__FILES__', JSON.stringify(list))
    },
  },
}
