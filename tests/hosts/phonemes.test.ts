import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium } from 'playwright-core'
import { afterAll, expect, test } from 'vitest'
import { build, createServer, preview } from 'vite'
import { root, runDeno } from './processes.ts'

const folder = mkdtempSync(join(tmpdir(), 'pronounce-'))
afterAll(() => rmSync(folder, { recursive: true }))
const page = {
  configFile: false,
  root: join(root, 'tests/hosts/phonemes_page'),
  base: './',
  cacheDir: join(folder, 'vite'),
  logLevel: 'error',
  build: { outDir: join(folder, 'site'), target: 'es2022' },
} as const
const local = { host: '127.0.0.1', port: 0 }

/** The title that the page gives itself, and where it asked for anything else than its own server. */
async function read(url: string): Promise<{ title: string; others: string[] }> {
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] })
  try {
    const tab = await browser.newPage()
    const others: string[] = []
    tab.on(
      'request',
      (r) => !r.url().startsWith(new URL(url).origin) && !r.url().startsWith('data:') && others.push(r.url()),
    )
    tab.on('pageerror', (error) => others.push(`${error}`))
    await tab.goto(`${url}#${encodeURIComponent('Hello, world!')}`)
    await tab.waitForFunction(() => document.title !== 'phonemes', undefined, { timeout: 60_000 })
    return { title: await tab.title(), others }
  } finally {
    await browser.close()
  }
}

test('a page that Vite serves', async () => {
  const server = await createServer({ ...page, server: local })
  await server.listen()
  expect(await read(server.resolvedUrls!.local[0]!)).toEqual({ title: 'həlˈoʊ, wˈɜːld!', others: [] })
  await server.close()
})

test('a page that Vite has built', async () => {
  await build(page)
  const server = await preview({ ...page, preview: local })
  expect(await read(server.resolvedUrls!.local[0]!)).toEqual({ title: 'həlˈoʊ, wˈɜːld!', others: [] })
  await server.close()
})

test('Deno', async () => {
  const { code, stdout, stderr } = await runDeno('deno_phonemes.ts', 'Hello, world!')
  expect(code, stderr).toBe(0)
  expect(stdout).toBe('həlˈoʊ, wˈɜːld!\n')
})
