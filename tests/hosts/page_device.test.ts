import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { createServer, type ViteDevServer } from 'vite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { choose, type Host, open, page, picture, type Site, shown, startBrowser, startSite } from './pages.ts'
import { root } from './processes.ts'

// The page and its device: which it takes, what it tells of it, and what it does when it goes away.

let host: Host
beforeAll(async () => {
  host = await startBrowser(true)
})
afterAll(() => host?.close())

describe('the page of vite --mode demo', () => {
  let server: ViteDevServer
  beforeAll(async () => {
    server = await createServer({
      ...page,
      cacheDir: join(root, '.cache/vite'),
      server: { host: '127.0.0.1', port: 0 },
    })
    await server.listen()
  })
  afterAll(() => server?.close())

  test('takes no software adapter by itself, says so, and answers', async () => {
    const { tab, faults } = await open(host, server.resolvedUrls!.local[0]!)
    expect((await shown(tab)).answers.team).toMatchObject({ choice: 'billing' })
    await tab.locator('.badge').click()
    await expect
      .poll(() => tab.locator('.facts').textContent())
      .toMatch(/the only WebGPU adapter is software \(.*swiftshader/)
    expect(faults).toEqual([])
    await tab.close()
  })
})

describe('the built page, below a path', () => {
  let site: Site
  let tab: Page
  let faults: string[]
  beforeAll(async () => {
    site = await startSite()
    ;({ tab, faults } = await open(host, site.url))
  })
  afterAll(async () => {
    await tab?.close()
    await site?.close()
  })

  test('tells all about the device', async () => {
    await choose(tab, 'webgpu')
    await expect.poll(() => tab.locator('.badge').textContent()).toContain('swiftshader')
    await tab.locator('.badge').click()
    const facts = (await tab.locator('.facts').textContent())!
    for (const fact of [
      'Adapter',
      'Architecture',
      'asked for',
      'f32',
      'f16no',
      'Subgroupsyes',
      'Subgroup matrixno',
      'In softwareyes',
      'Switched off',
    ])
      expect(facts).toContain(fact)
    await picture(tab, 'device')
    await tab.keyboard.press('Escape')
  })

  test('answers again after the GPU went away', async () => {
    await choose(tab, 'cpu')
    await expect.poll(() => tab.locator('.badge').textContent()).toContain('CPU')
    const [engine] = tab.workers()
    await engine!.evaluate(() => {
      const request = GPUAdapter.prototype.requestDevice
      GPUAdapter.prototype.requestDevice = async function (this: GPUAdapter, ...args) {
        const held = await request.apply(this, args)
        Object.assign(globalThis, { held })
        return held
      }
    })
    await choose(tab, 'webgpu')
    const before = await shown(tab)
    await engine!.evaluate(() => (globalThis as unknown as { held: GPUDevice }).held.destroy())
    await tab.getByRole('textbox', { name: 'Text' }).fill('I would like pricing for fifty licenses.')
    await tab.locator('#raw').waitFor({ state: 'detached' })
    expect(await shown(tab)).not.toEqual(before)
    expect(faults).toEqual([])
  })
})
