import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Browser, chromium, type Page } from 'playwright-core'
import sharp from 'sharp'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createServer, type ViteDevServer } from 'vite'
import { readImage } from '../../src/media/image.ts'
import { root, run } from './processes.ts'

// What a page's browser makes of a file is what sharp makes of it in Node.

const folder = mkdtempSync(join(tmpdir(), 'pronounce-'))
let server: ViteDevServer
let browser: Browser
let tab: Page
const faults: string[] = []
beforeAll(async () => {
  server = await createServer({
    configFile: false,
    root: join(root, 'tests/hosts/images_page'),
    cacheDir: join(folder, 'vite'),
    logLevel: 'error',
    optimizeDeps: { exclude: ['sharp'] },
    server: { host: '127.0.0.1', port: 0 },
  })
  await server.listen()
  browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] })
  tab = await browser.newPage()
  tab.on('pageerror', (error) => faults.push(`${error}`))
  await tab.goto(server.resolvedUrls!.local[0]!)
  await tab.waitForFunction(() => document.title === 'ready')
})
afterAll(async () => {
  expect(faults).toEqual([])
  await browser.close()
  await server.close()
  rmSync(folder, { recursive: true })
})

type Read = { width: number; height: number; data: number[] } | string
const called = (name: string, bytes: Uint8Array): Promise<unknown> =>
  tab.evaluate(({ name, bytes }) => (globalThis as unknown as Record<string, (b: number[]) => unknown>)[name]!(bytes), {
    name,
    bytes: [...bytes],
  })
const inPage = (bytes: Uint8Array) => called('readFile', bytes) as Promise<Read>

const [width, height] = [24, 16]
const rgb = Uint8Array.from({ length: 3 * width * height }, (_, i) => (Math.floor(i / 3) % 7) * 30 + (i % 3) * 20)
const picture = () => sharp(rgb, { raw: { width, height, channels: 3 } })

async function expectAlike(file: Buffer, drift: number): Promise<void> {
  const ours = await readImage(file)
  const page = await inPage(file)
  expect(page).toMatchObject({ width: ours.width, height: ours.height })
  const data = (page as Exclude<Read, string>).data
  expect(data).toHaveLength(ours.data.length)
  expect(Math.max(...data.map((v, i) => Math.abs(v - ours.data[i]!)))).toBeLessThanOrEqual(drift)
}

test('files without loss', async () => {
  const grey = picture().greyscale().toColourspace('b-w')
  const files = [picture().png(), picture().webp({ lossless: true }), grey.png(), picture().gif()]
  for (const file of files) await expectAlike(await file.toBuffer(), 0)
})

test('JPEG, turned and in other colours', async () => {
  for (const orientation of [1, 3, 6, 8])
    await expectAlike(await picture().withMetadata({ orientation }).jpeg({ chromaSubsampling: '4:4:4' }).toBuffer(), 3)
  const profiled = await picture().withIccProfile('p3').jpeg({ chromaSubsampling: '4:4:4' }).toBuffer()
  await expectAlike(profiled, 3)
})

test('16 bits, and what is not opaque', async () => {
  await expectAlike(await picture().toColourspace('rgb16').png().toBuffer(), 1)
  const half = {
    create: { width: 8, height: 8, channels: 4, background: { r: 10, g: 100, b: 200, alpha: 0.5 } },
  } as const
  await expectAlike(await sharp(half).png().toBuffer(), 1)
})

test('what else a page has', async () => {
  const file = await picture().png().toBuffer()
  const read = (await called('readHeld', file)) as Record<string, Read>
  const want = { width, height, data: [...rgb] }
  expect(read).toEqual({ ImageBitmap: want, HTMLCanvasElement: want, OffscreenCanvas: want, ImageData: want })
})

test('files that cannot be read', async () => {
  expect(await inPage(Uint8Array.of(1, 2, 3))).toMatch('InputError: image: the file is no PNG')
  const file = await picture().png().toBuffer()
  expect(await inPage(file.subarray(0, 60))).toMatch('InputError: image: the PNG file cannot be decoded')
  const bomb = Uint8Array.from(file)
  bomb[16] = 1 // 2^24 pixels wider
  expect(await inPage(bomb)).toMatch('expected at most')
})

test('Deno, which lets a package of native code do nothing unasked', async () => {
  const allowed = ['--allow-read', '--allow-ffi', '--allow-env', '--allow-sys']
  const file = 'tests/fixtures/decider-nano/golden_image_red.png'
  const deno = join(root, 'node_modules/.bin/deno')
  const { code, stdout, stderr } = await run(deno, ['run', '--quiet', ...allowed, 'tests/hosts/deno_image.ts', file])
  expect(code, stderr).toBe(0)
  expect(stdout).toBe('224 224 255,0,0\n')
})
