import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { extname, join } from 'node:path'
import { type Browser, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { build, createServer as createDevServer, type ViteDevServer } from 'vite'
import { root } from './processes.ts'

const executablePath = '/usr/bin/chromium'
const flags =
  '--no-sandbox --enable-unsafe-webgpu --use-webgpu-adapter=swiftshader --disable-quic --no-first-run ' +
  '--disable-background-networking --disable-component-update --disable-sync'
const page = {
  root: join(root, 'demo'),
  configFile: join(root, 'vite.config.ts'),
  mode: 'demo',
  logLevel: 'warn',
} as const
const folder = mkdtempSync(join(tmpdir(), 'pronounce-'))

let browser: Browser
beforeAll(async () => {
  if (!existsSync(executablePath)) throw new Error(`${executablePath} is missing. Run: apt-get install -y chromium`)
  browser = await chromium.launch({ executablePath, args: flags.split(' ') })
})
afterAll(async () => {
  await browser?.close()
  rmSync(folder, { recursive: true })
})

/** A page of its own, and what it did that no page of ours may do. */
async function open(url: string, before?: () => void): Promise<{ tab: Page; faults: string[] }> {
  const tab = await browser.newPage()
  const faults: string[] = []
  tab.on('pageerror', (error) => faults.push(`${error}`))
  tab.on('console', (m) => ['error', 'warning'].includes(m.type()) && faults.push(`${m.type()}: ${m.text()}`))
  tab.on('request', (request) => new URL(request.url()).origin !== new URL(url).origin && faults.push(request.url()))
  if (before) await tab.addInitScript(before)
  await tab.goto(url)
  return { tab, faults }
}

interface Shown {
  readonly bars: string[]
  readonly badge: string
  readonly status: string
  readonly error: string
}

/** Fills in the form, asks, and reads the page. */
async function ask(tab: Page, device: string, options = 'billing, technical, sales'): Promise<Shown> {
  await tab.getByLabel('Options').fill(options)
  await tab.getByLabel('Device', { exact: true }).selectOption(device)
  await tab.getByRole('button').click()
  await tab.waitForSelector('button:enabled')
  const text = async (id: string) => (await tab.locator(id).textContent()) ?? ''
  const [badge, status, error] = await Promise.all([text('#badge'), text('#status'), text('#error')])
  return { bars: await tab.locator('#bars li').allTextContents(), badge, status, error }
}

function expectBilling({ bars, error, status }: Shown): void {
  expect(error).toBe('')
  expect(bars).toEqual(['billing 96.0 %', 'technical 1.9 %', 'sales 2.1 %'])
  expect(status).toMatch(/^decider-nano-\d+, \d+ ms$/)
}

describe('the page of vite --mode demo', () => {
  let server: ViteDevServer
  let tab: Page
  let faults: string[]
  beforeAll(async () => {
    server = await createDevServer({ ...page, cacheDir: join(folder, 'vite'), server: { host: '127.0.0.1', port: 0 } })
    await server.listen()
    ;({ tab, faults } = await open(server.resolvedUrls!.local[0]!))
  })
  afterAll(async () => {
    await tab?.close()
    await server?.close()
  })
  beforeEach(() => {
    faults.length = 0
  })

  test('answers on WebGPU, and says on which', async () => {
    const shown = await ask(tab, 'webgpu')
    expectBilling(shown)
    expect(shown.badge).toMatch(/swiftshader.* \(software\), f32: asked for$/)
    expect(faults).toEqual([])
  })
  test('answers on the CPU', async () => {
    const shown = await ask(tab, 'cpu')
    expectBilling(shown)
    expect(shown.badge).toMatch(/^CPU, .*: asked for$/)
    expect(faults).toEqual([])
  })
  test('takes no software adapter by itself, and says so', async () => {
    const shown = await ask(tab, 'auto')
    expectBilling(shown)
    expect(shown.badge).toMatch(/^CPU, .*: the only WebGPU adapter is software \(.*swiftshader.*\)$/)
    expect(faults).toEqual([])
  })
  test('answers yes or no', async () => {
    const { bars, error } = await ask(tab, 'webgpu', '')
    expect(error).toBe('')
    expect(bars).toEqual([expect.stringMatching(/^no \d+\.\d %$/), expect.stringMatching(/^yes \d+\.\d %$/)])
  })
  test('says what is wrong with a question, and answers the next', async () => {
    const { bars, badge, error } = await ask(tab, 'webgpu', 'billing')
    expect(bars).toEqual([])
    expect(badge).toContain('swiftshader')
    expect(error).toMatch(/^question 'it': .* 2\.\.255 options, has /)
    expectBilling(await ask(tab, 'webgpu'))
    expect(faults).toEqual([])
  })
})

describe('the built page, from a plain server', () => {
  let server: Server
  let url: string
  beforeAll(async () => {
    await build({ ...page, build: { outDir: join(folder, 'site/some/where') } })
    server = createServer(serve)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  afterAll(() => server?.close())

  test('answers from below a path, and again after the GPU went away', async () => {
    const { tab, faults } = await open(`${url}/some/where/`, holdDevice)
    expectBilling(await ask(tab, 'webgpu'))
    await tab.evaluate(() => (globalThis as unknown as Held).held.destroy())
    expectBilling(await ask(tab, 'webgpu'))
    expect(faults).toEqual([])
    await tab.close()
  })
  test('answers on the CPU where there is no WebGPU, and says why', async () => {
    const { tab, faults } = await open(`${url}/some/where/index.html`, hideGpu)
    const refused = await ask(tab, 'webgpu')
    expect(refused.error).toBe("openDevice: 'webgpu' needs WebGPU: this browser has no WebGPU")
    expect(refused.bars).toEqual([])
    const shown = await ask(tab, 'auto')
    expectBilling(shown)
    expect(shown.badge).toMatch(/^CPU, .*: no GPU: this browser has no WebGPU$/)
    expect(faults).toEqual([])
    await tab.close()
  })

  const types: Record<string, string> = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' }
  /** Whole files, no ranges: the least that hosts of static pages do. */
  const serve: Parameters<typeof createServer>[1] = async (request, response) => {
    const path = new URL(request.url!, url).pathname.replace(/\/$/, '/index.html')
    try {
      const body = await readFile(join(folder, 'site', path))
      response.writeHead(200, { 'content-type': types[extname(path)] ?? 'application/octet-stream' }).end(body)
    } catch {
      response.writeHead(404).end()
    }
  }
})

interface Held {
  held: GPUDevice
}

/** Run in the page before its own script: keeps the last device within reach. */
function holdDevice(): void {
  const request = GPUAdapter.prototype.requestDevice
  GPUAdapter.prototype.requestDevice = async function (this: GPUAdapter, ...args) {
    const device = await request.apply(this, args)
    ;(globalThis as unknown as Held).held = device
    return device
  }
}

/** Run in the page before its own script: a browser without WebGPU. */
function hideGpu(): void {
  Object.defineProperty(Navigator.prototype, 'gpu', { get: () => undefined })
}
