import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { AxeResults } from 'axe-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Host, open, picture, shown, type Site, startBrowser, startSite } from './pages.ts'

// The built page as a site: what it sends, what it keeps, and whether everybody can use it.

let host: Host
let site: Site
beforeAll(async () => {
  ;[host, site] = await Promise.all([startBrowser(false), startSite()])
})
afterAll(async () => {
  await host?.close()
  await site?.close()
})

const KB = 1000
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

test('its own scripts are small before a model is chosen', async () => {
  const context = await host.context.browser()!.newContext({ serviceWorkers: 'block' }) // which fetches all of the site
  const tab = await context.newPage()
  site.sent.length = 0
  await tab.goto(`${site.url}#models`)
  await tab.getByRole('article', { name: 'decider-nano' }).getByText('f32').waitFor() // the device is open
  const scripts = new Map(
    site.sent.filter(({ path }) => path.endsWith('.js')).map((file) => [file.path, file.gzipBytes]),
  )
  expect(scripts.size).toBeGreaterThanOrEqual(2) // the page and its worker
  expect([...scripts.values()].reduce((a, b) => a + b, 0)).toBeLessThan(150 * KB)
  await context.close()
})

test('allows scripts of its own alone', async () => {
  const { tab, faults } = await open(host, site.url)
  const policy = await tab.locator('meta[http-equiv=Content-Security-Policy]').getAttribute('content')
  expect(policy).toContain("script-src 'self';")
  expect(policy).not.toMatch(/unsafe|https?:|\*/)
  await tab.evaluate(() => {
    const script = document.createElement('script')
    script.textContent = 'globalThis.ran = true'
    document.body.append(script)
  })
  expect(await tab.evaluate(() => 'ran' in globalThis)).toBe(false)
  expect(faults.filter((fault) => !fault.includes('Content Security Policy'))).toEqual([])
  expect(faults).not.toEqual([])
  await tab.close()
})

test.each(['light', 'dark'] as const)('everybody can use it (%s), on a small screen too', async (colorScheme) => {
  const { tab, faults } = await open(host, site.url)
  await tab.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
  await shown(tab)
  for (const view of ['decide', 'speak', 'models', 'benchmark']) {
    await tab.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: view }).click()
    await tab.getByRole('heading', { level: 1, name: `pronounce: ${view}` }).waitFor({ state: 'attached' })
    for (const width of [1280, 360]) {
      await tab.setViewportSize({ width, height: 800 })
      await tab.evaluate(axe)
      const { violations, passes } = await tab.evaluate(() =>
        (globalThis as unknown as { axe: { run(): Promise<AxeResults> } }).axe.run(),
      )
      expect(passes.length).toBeGreaterThan(10)
      const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')
      expect(
        serious.map(({ id, nodes }) => `${view} ${width}: ${id}: ${nodes.map(({ html }) => html).join(' ')}`),
      ).toEqual([])
      expect(await tab.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width)
      await picture(tab, `${view}_${colorScheme}_${width}`)
    }
  }
  expect(faults).toEqual([])
  await tab.close()
})

test('the keyboard reaches everything', async () => {
  const { tab } = await open(host, site.url)
  await shown(tab)
  const focused = () => tab.evaluate(() => document.activeElement?.textContent || document.activeElement?.id || '')
  await tab.keyboard.press('Tab')
  expect(await focused()).toContain('To the content')
  await tab.keyboard.press('Enter')
  expect(await tab.evaluate(() => document.activeElement?.id)).toBe('main')
  await tab.keyboard.press('Tab')
  expect(await focused()).toBe('text')
  await tab.locator('.badge').focus()
  await tab.keyboard.press('Enter')
  await tab.locator('dialog[open]').waitFor()
  await tab.keyboard.press('Escape')
  await tab.locator('dialog[open]').waitFor({ state: 'detached' })
  expect(await focused()).toContain('CPU') // where it was
  await tab.close()
})

interface TraceEvent {
  readonly name: string
  readonly pid: number
  readonly tid: number
  /** Microseconds of the thread's own time, whatever else the machine does. */
  readonly tdur?: number
  readonly args: { readonly name?: string; readonly data?: { readonly url?: string } }
}

test('its own thread is never busy for long while models load, answer and speak', async () => {
  const { tab } = await open(host, site.url)
  await tab.locator('.badge').waitFor()
  const browser = host.context.browser()!
  await browser.startTracing(tab, {
    categories: ['devtools.timeline', 'disabled-by-default-devtools.timeline', '__metadata'],
  })
  await shown(tab)
  await tab.getByRole('button', { name: 'Review' }).click()
  await tab.locator('#raw').waitFor({ state: 'detached' })
  await shown(tab)
  await tab.getByRole('link', { name: 'speak' }).click()
  await tab.getByRole('textbox', { name: 'Text' }).fill('/haɪ/')
  await tab.getByLabel('CFG').fill('1')
  await tab.getByRole('button', { name: 'Speak', exact: true }).click()
  await tab.locator('.ipa').waitFor()
  const { traceEvents } = JSON.parse(`${await browser.stopTracing()}`) as { traceEvents: TraceEvent[] }
  const thread = ({ pid, tid }: TraceEvent): string => `${pid}:${tid}`
  const main = new Set(traceEvents.filter(({ args }) => args.name === 'CrRendererMain').map(thread))
  const own = new Set(traceEvents.filter(({ args }) => args.data?.url?.startsWith(site.url)).map(thread))
  const tasks = traceEvents.filter(
    (event) => event.name === 'RunTask' && main.has(thread(event)) && own.has(thread(event)),
  )
  expect(tasks.length).toBeGreaterThan(100)
  expect(Math.max(...tasks.map(({ tdur = 0 }) => tdur / 1000))).toBeLessThan(50)
  await tab.close()
})

test('says what to do in a browser without WebGPU', async () => {
  const tab = await host.context.newPage()
  await tab.addInitScript(() => Object.defineProperty(Navigator.prototype, 'gpu', { get: () => undefined }))
  await tab.goto(site.url)
  await tab.getByText('This browser has no WebGPU, so everything runs on the CPU').waitFor()
  await picture(tab, 'no_webgpu')
  await tab.close()
})

test('works without a network from the first load on, speech included, until its copy is deleted', async () => {
  const { tab, faults } = await open(host, `${site.url}#models`)
  const kept = tab.getByText(/ MB of this page and its models are kept/)
  const wanted = /^(6[5-9]|7\d)\.?\d* MB/ // models, dictionaries and the page
  await expect
    .poll(
      async () => {
        await tab.reload()
        return (await kept.textContent({ timeout: 5000 }).catch(() => '')) ?? ''
      },
      { timeout: 100_000, interval: 2000 },
    )
    .toMatch(wanted)
  const { url } = site
  await site.close()
  await expect(fetch(url)).rejects.toThrow()
  await tab.goto(url)
  expect((await shown(tab)).answers.team).toMatchObject({ choice: 'billing' })
  await tab.getByRole('link', { name: 'speak' }).click()
  await tab.getByRole('textbox', { name: 'Text' }).fill('Yes.')
  await tab.getByLabel('CFG').fill('1')
  await tab.getByRole('button', { name: 'Speak', exact: true }).click()
  await tab.locator('.ipa').waitFor()
  expect(await tab.locator('.ipa').textContent()).toBe('/jˈɛs./')
  await picture(tab, 'offline')
  await tab.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'models' }).click()
  await tab.getByRole('button', { name: 'Delete offline copy' }).click()
  await kept.waitFor({ state: 'detached' })
  expect(await tab.evaluate(() => caches.keys())).toEqual([])
  expect(faults).toEqual([])
})
