import { existsSync, mkdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { type BrowserContext, chromium, type Page } from 'playwright-core'
import { build } from 'vite'
import { expect, vi } from 'vitest'
import { type Decider, type Decision, loadDecider, openDevice, type Questions } from '../../src/index.ts'
import { oncePerRun, root } from './processes.ts'

const executablePath = '/usr/bin/chromium'
const flags =
  '--no-sandbox --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync ' +
  '--use-fake-device-for-media-stream'
const withGpu = '--enable-unsafe-webgpu --use-webgpu-adapter=swiftshader'
const withoutGpu = '--disable-gpu' // there is no adapter
/** Pictures of every state, made anew by each run. */
const screenshots = join(root, '.cache/screenshots')

export const page = {
  root: join(root, 'demo'),
  configFile: join(root, 'vite.config.ts'),
  mode: 'demo',
  logLevel: 'error',
} as const

export interface Site {
  readonly url: string
  /** What was asked for, and how long it is when compressed. */
  readonly sent: { readonly path: string; readonly gzipBytes: number }[]
  close(): Promise<void>
}

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
}
/** The policies that README asks a server for: WebAssembly for the engine's worker alone. */
const policyOf = (path: string): string =>
  /\/worker-[^/]+\.js$/.test(path)
    ? "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self' https: http://127.0.0.1:*" // hubs of tests
    : "script-src 'self'; object-src 'none'"

/** Builds the page and serves it below a path: whole files, no ranges, the least that hosts of static pages do. */
export async function startSite(): Promise<Site> {
  const folder = await oncePerRun('site', async (folder) => {
    vi.stubEnv('NODE_ENV', 'production') // else it is built as for tests
    await build({ ...page, build: { outDir: join(folder, 'some/where') } })
    vi.unstubAllEnvs()
  })
  const sent: Site['sent'] = []
  const server = createServer(async (request, response) => {
    const path = new URL(request.url!, 'http://site').pathname.replace(/\/$/, '/index.html')
    try {
      const body = await readFile(join(folder, path))
      if (extname(path) === '.js') sent.push({ path, gzipBytes: gzipSync(body).length })
      else sent.push({ path, gzipBytes: 0 })
      const headers = {
        'content-type': types[extname(path)] ?? 'application/octet-stream',
        'content-length': body.length,
        'content-security-policy': policyOf(path),
      }
      response.writeHead(200, headers).end(request.method === 'HEAD' ? undefined : body)
    } catch {
      response.writeHead(404).end()
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/some/where/`,
    sent,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

export interface Host {
  readonly context: BrowserContext
  close(): Promise<void>
}

/** A browser with WebGPU in software, or with none at all. */
export async function startBrowser(gpu: boolean): Promise<Host> {
  if (!existsSync(executablePath)) throw new Error(`${executablePath} is missing. Run: apt-get install -y chromium`)
  const args = `${flags} ${gpu ? withGpu : withoutGpu}`.split(' ')
  const browser = await chromium.launch({ executablePath, args })
  const context = await browser.newContext({
    permissions: ['clipboard-read', 'clipboard-write', 'camera'],
    viewport: { width: 1280, height: 900 },
  })
  context.setDefaultTimeout(110_000)
  return { context, close: () => browser.close() }
}

/** A tab, and what it did that no page of ours may do. */
export async function open({ context }: Host, url: string): Promise<{ tab: Page; faults: string[] }> {
  const tab = await context.newPage()
  const faults: string[] = []
  tab.on('pageerror', (error) => faults.push(`${error}`))
  tab.on('console', (m) => ['error', 'warning'].includes(m.type()) && faults.push(`${m.type()}: ${m.text()}`))
  tab.on('request', (request) => {
    const { origin, protocol } = new URL(request.url())
    if (origin !== new URL(url).origin && !['blob:', 'data:'].includes(protocol)) faults.push(request.url())
  })
  await tab.goto(url)
  return { tab, faults }
}

export async function picture(tab: Page, name: string): Promise<void> {
  mkdirSync(screenshots, { recursive: true })
  await tab.screenshot({ path: join(screenshots, `${name}.png`), fullPage: true })
}

/** Chooses the device in the badge's dialog. */
export async function choose(tab: Page, device: 'auto' | 'webgpu' | 'cpu'): Promise<void> {
  await tab.locator('.badge').click()
  await tab.getByLabel('Run on').selectOption(device)
  await tab.locator('dialog').getByRole('button', { name: 'Close' }).click()
}

/** The decision that the page shows, when it shows one. */
export async function shown(tab: Page): Promise<Decision> {
  await tab.locator('#raw').waitFor({ state: 'attached' })
  return JSON.parse((await tab.locator('#raw').textContent())!)
}

let node: Promise<Decider> | undefined
/** What Node says to a request, on the CPU. */
export async function inNode(text: string, questions: Questions): Promise<Decision> {
  node ??= openDevice('cpu').then((device) => loadDecider(join(root, 'public/models/decider-nano'), { device }))
  return (await node).decide(text, questions)
}

/** All numbers of a value, by their path in it. */
export const numbersIn = (value: unknown, path = ''): [string, number][] =>
  typeof value === 'number'
    ? [[path, value]]
    : typeof value === 'object' && value !== null
      ? Object.entries(value).flatMap(([key, inner]) => numbersIn(inner, `${path}/${key}`))
      : []

/** The same answers, with numbers as near as devices are: four decimals, of which the last may be rounded otherwise. */
export function expectNear(here: Decision, there: Decision): void {
  const [ours, theirs] = [numbersIn(here), numbersIn(there)]
  expect(ours.map(([path]) => path)).toEqual(theirs.map(([path]) => path))
  for (const [i, [path, value]] of theirs.entries()) expect(Math.abs(ours[i]![1] - value), path).toBeLessThan(NEAR)
}
const NEAR = 1e-4 + 1e-9
