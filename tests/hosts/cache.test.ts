import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type BrowserContext, chromium, type Page } from 'playwright-core'
import { build, type PreviewServer, preview } from 'vite'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { cut, type Hub, noise, sha256, startHub } from '../weights/hub.ts'
import type { Harness } from './cache_page/main.ts'
import { root, start } from './processes.ts'

const PIECE = 16 * 2 ** 20
const large = noise(2 * PIECE + 12345)
const digest = sha256(large)
const folder = mkdtempSync(join(tmpdir(), 'pronounce-'))

let hub: Hub
beforeAll(async () => {
  hub = await startHub({ 'config.json': new TextEncoder().encode('{}'), 'model.safetensors': large })
})
beforeEach(() => {
  hub.fault = undefined
  hub.log.length = 0
})
afterAll(async () => {
  await hub.close()
  rmSync(folder, { recursive: true })
})
/** The token that `load` passes goes to the hub alone, not where it redirects to. */
function expectTokens(): void {
  const tokens = new Set(hub.log.map(({ host, authorization }) => `${host} ${authorization}`))
  expect(tokens).toEqual(new Set(['hub Bearer secret', 'store undefined']))
}
const readsOfStore = () => hub.reads().filter((read) => read.startsWith('store'))

describe('a page', () => {
  let server: PreviewServer
  let context: BrowserContext // a profile of its own on disk: an empty cache
  let faults: string[]
  beforeAll(async () => {
    const page = {
      configFile: false,
      root: join(root, 'tests/hosts/cache_page'),
      base: './',
      logLevel: 'error',
      build: { outDir: join(folder, 'site'), target: 'es2022' },
    } as const
    await build(page)
    server = await preview({ ...page, preview: { host: '127.0.0.1', port: 0 } })
  })
  afterAll(() => server?.close())
  beforeEach(async () => {
    const profile = mkdtempSync(join(folder, 'profile-'))
    const executablePath = '/usr/bin/chromium'
    context = await chromium.launchPersistentContext(profile, { executablePath, args: ['--no-sandbox'] })
    faults = []
  })
  afterEach(async () => {
    await context.close()
    expect(faults).toEqual([]) // of the CSP above all: no eval, no WebAssembly
  })

  async function open(): Promise<Page> {
    const tab = await context.newPage()
    tab.on('pageerror', (error) => faults.push(`${error}`))
    tab.on('console', (m) => m.text().includes('Content Security Policy') && faults.push(m.text()))
    await tab.goto(server.resolvedUrls!.local[0]!)
    await tab.waitForFunction(() => 'harness' in globalThis)
    return tab
  }
  const load = (
    tab: Page,
    where: 'load' | 'loadInWorker',
    more: { offline?: boolean; stopAt?: number; plain?: boolean } = {},
  ) =>
    tab.evaluate(([where, task]) => (globalThis as unknown as { harness: Harness }).harness[where](task), [
      where,
      { name: 'hf:me/it', base: hub.base, ...more },
    ] as const)

  test.each(['load', 'loadInWorker'] as const)(
    'keeps what it loads, and loads it without a network (%s)',
    async (where) => {
      const tab = await open()
      expect(await load(tab, where)).toMatchObject({ digest, last: large.length })
      expect(readsOfStore().length).toBe(1)
      expectTokens()
      hub.log.length = 0
      hub.fault = (_, response) => Boolean(response.destroy())
      expect(await load(tab, 'load')).toMatchObject({ digest, last: undefined })
      expect(await load(tab, 'loadInWorker', { offline: true })).toMatchObject({ digest, last: undefined })
      await context.setOffline(true) // the modules of the page are there by now
      expect(await load(tab, 'load')).toMatchObject({ digest })
      await context.setOffline(false)
      await tab.close()
      expect(await load(await open(), 'load')).toMatchObject({ digest })
      expect(hub.log).toEqual([])
    },
  )
  test('a worker without writable streams keeps it too', async () => {
    const tab = await open()
    expect(await load(tab, 'loadInWorker', { plain: true })).toMatchObject({ digest, last: large.length })
    expect(await load(tab, 'load', { offline: true })).toMatchObject({ digest })
    expect(readsOfStore().length).toBe(1)
  })
  test('two tabs and a worker at once load it once', async () => {
    const tabs = await Promise.all([open(), open()])
    const all = [load(tabs[0]!, 'load'), load(tabs[1]!, 'load'), load(tabs[1]!, 'loadInWorker')]
    for (const loaded of await Promise.all(all)) expect(loaded).toMatchObject({ digest })
    expect(readsOfStore().length).toBe(1)
  })
  test('goes on where the tab was closed', async () => {
    const tab = await open()
    hub.fault = (asked, response, body) => {
      if (asked.host !== 'store') return false
      response.writeHead(206, { 'content-range': `bytes 0-${body.length - 1}/${body.length}` })
      response.write(body.subarray(0, PIECE + 99)) // and no more
      return true
    }
    const loading = load(tab, 'load').catch(() => {})
    const bytes = () =>
      tab.evaluate(async () => {
        const [model] = await (globalThis as unknown as { harness: Harness }).harness.cache.list()
        return model?.bytes ?? 0
      })
    await expect.poll(bytes, { timeout: 60_000 }).toBeGreaterThan(PIECE)
    await tab.close()
    await loading
    hub.fault = undefined
    hub.log.length = 0
    expect(await load(await open(), 'load')).toMatchObject({ digest, last: large.length })
    expect(readsOfStore()).toEqual([`store model.safetensors bytes=${PIECE}-${large.length - 1}`])
  })
  test('mends a transfer that is cut, stops when it is told to, lists and deletes', async () => {
    const tab = await open()
    let cuts = 0
    hub.fault = (asked, response, body) => asked.host === 'store' && cuts++ < 1 && cut(asked, response, body, 1_000_000)
    await expect(load(tab, 'load', { stopAt: PIECE + 1 })).rejects.toThrow('stopped')
    expect(await load(tab, 'load')).toMatchObject({ digest })
    const rest = await tab.evaluate(async () => {
      const { cache } = (globalThis as unknown as { harness: Harness }).harness
      const [model] = await cache.list()
      return [model, await cache.remove('hf:me/it'), await cache.list()]
    })
    const { bytes } = rest[0] as { bytes: number }
    expect(rest).toEqual([{ name: `hf:me/it@${hub.commit}`, bytes, files: 1, complete: true }, bytes, []])
    expect(bytes).toBeGreaterThan(large.length)
  })
  test('finds a piece that something has changed', async () => {
    const tab = await open()
    await load(tab, 'load')
    hub.log.length = 0
    await tab.evaluate(async () => {
      const visit = async (folder: FileSystemDirectoryHandle): Promise<void> => {
        for await (const [name, entry] of folder.entries()) {
          if (entry.kind === 'directory') await visit(entry as FileSystemDirectoryHandle)
          if (name !== '1') continue
          const stream = await (entry as FileSystemFileHandle).createWritable({ keepExistingData: true })
          await stream.write(new Uint8Array(10))
          await stream.close()
        }
      }
      await visit(await navigator.storage.getDirectory())
    })
    expect(await load(tab, 'load')).toMatchObject({ digest })
    expect(readsOfStore()).toEqual([`store model.safetensors bytes=${PIECE}-${2 * PIECE - 1}`])
  })
})

describe('Deno', () => {
  const args = ['run', '--quiet', '--allow-all', 'tests/hosts/deno_cache.ts']
  const deno = join(root, 'node_modules/.bin/deno')

  test('a process that is killed leaves its pieces and its lock to the next', async () => {
    const env = { PRONOUNCE_CACHE: join(folder, 'killed') }
    hub.fault = (asked, response, body) => {
      if (asked.host !== 'store') return false
      response.writeHead(206, { 'content-range': `bytes 0-${body.length - 1}/${body.length}` })
      response.write(body.subarray(0, PIECE + 99)) // and no more
      return true
    }
    const killed = await start(deno, [...args, hub.base, 'die'], env).finished
    expect(killed.code).not.toBe(0)
    expect(killed.stdout).toBe('')
    hub.fault = undefined
    hub.log.length = 0
    const next = await start(deno, [...args, hub.base], env).finished
    expect(next.code, next.stderr).toBe(0)
    expect(JSON.parse(next.stdout)).toMatchObject({ digest })
    expect(readsOfStore()).toEqual([`store model.safetensors bytes=${PIECE}-${large.length - 1}`])
  })
  test('two processes at once load it once, and a third one without a network', async () => {
    const env = { PRONOUNCE_CACHE: join(folder, 'cache') }
    const both = await Promise.all([0, 1].map(() => start(deno, [...args, hub.base], env).finished))
    for (const { code, stdout, stderr } of both) {
      expect(code, stderr).toBe(0)
      expect(JSON.parse(stdout)).toMatchObject({ digest, models: [{ name: `hf:me/it@${hub.commit}`, complete: true }] })
    }
    expect(readsOfStore().length).toBe(1)
    expectTokens()
    const { code, stdout, stderr } = await start(deno, [...args, 'http://127.0.0.1:1', 'offline'], env).finished
    expect(code, stderr).not.toBe(0) // another base is another model
    expect(stdout).toBe('')
    hub.log.length = 0
    const third = await start(deno, [...args, hub.base, 'offline'], env).finished
    expect(third.code, third.stderr).toBe(0)
    expect(JSON.parse(third.stdout)).toMatchObject({ digest, where: join(folder, 'cache/models') })
    expect(hub.log).toEqual([])
  })
})
