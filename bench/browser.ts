import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { chromium } from 'playwright-core'
import { preview } from 'vite'
import { type Result, save, table } from './measure.ts'

// Drives the benchmark of the built page in a Chromium and writes what the page measured. `npm run bench:browser`.

const help = `usage: npm run bench:browser -- [options]

  --device auto|webgpu|cpu   default webgpu
  --runs N                   default 9
  --out FILE                 writes the result as JSON
  --software                 lets a software adapter pass; its times say nothing about GPUs
  --browser FILE             default /usr/bin/chromium
  --flags "A B"              of the browser, instead of those that let it use a GPU without a screen
`
const { values } = parseArgs({
  options: {
    device: { type: 'string', default: 'webgpu' },
    runs: { type: 'string', default: '9' },
    out: { type: 'string' },
    software: { type: 'boolean', default: false },
    browser: { type: 'string', default: '/usr/bin/chromium' },
    flags: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
const note = (line: string) => void process.stderr.write(`${line}\n`)

/** Vulkan is off in a Chromium without a screen on Linux. */
const hardware =
  '--no-sandbox --enable-unsafe-webgpu --enable-features=Vulkan --use-angle=vulkan --disable-vulkan-surface'
const software = '--no-sandbox --enable-unsafe-webgpu --use-webgpu-adapter=swiftshader'
const NO_LIMIT = 0

async function measure(): Promise<Result> {
  const root = process.cwd()
  const outDir = join(root, 'dist-demo')
  const server = await preview({ configFile: false, build: { outDir }, preview: { host: '127.0.0.1', port: 0 } })
  const args = (values.flags ?? (values.software ? software : hardware)).split(' ')
  const browser = await chromium.launch({ executablePath: values.browser, args })
  try {
    const tab = await browser.newPage()
    tab.setDefaultTimeout(NO_LIMIT)
    await tab.goto(`${server.resolvedUrls!.local[0]}#benchmark`)
    await tab.locator('.badge').click()
    await tab.getByLabel('Run on').selectOption(values.device)
    await tab.locator('.facts').waitFor()
    const refused = await tab.locator('dialog [role=alert]').allTextContents()
    if (refused.length > 0) throw new Error(refused[0])
    const facts = await tab.locator('.facts').textContent()
    note(`device: ${facts}`)
    if (!values.software && /In softwareyes/.test(facts!))
      throw new Error('bench: the adapter is software, expected a GPU; pass --software to run all the same')
    await tab.keyboard.press('Escape')
    await tab.getByLabel('Rounds').fill(values.runs)
    await tab.getByRole('button', { name: 'Run', exact: true }).click()
    await tab.getByRole('button', { name: 'Download JSON' }).or(tab.locator('main [role=alert]')).waitFor()
    const failed = await tab.locator('main [role=alert]').allTextContents()
    if (failed.length > 0) throw new Error(failed[0])
    const [download] = await Promise.all([
      tab.waitForEvent('download'),
      tab.getByRole('button', { name: 'Download JSON' }).click(),
    ])
    return JSON.parse(readFileSync(await download.path(), 'utf8'))
  } finally {
    await browser.close()
    await server.close()
  }
}

if (values.help) process.stdout.write(help)
else {
  const result = await measure()
  process.stdout.write(`${table(result.rows)}\n`)
  if (values.out) save(values.out, result)
}
