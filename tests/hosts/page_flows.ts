import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { examples } from '../../demo/decide/examples.ts'
import type { BenchmarkResult } from '../../demo/engine/benchmark.ts'
import { decodeWav, loadTts, mono, openDevice, readQuestions, yesNo } from '../../src/index.ts'
import { startHub } from '../weights/hub.ts'
import {
  choose,
  expectNear,
  type Host,
  inNode,
  numbersIn,
  open,
  picture,
  shown,
  type Site,
  startBrowser,
  startSite,
} from './pages.ts'
import { root } from './processes.ts'

const [letter] = examples
const models = join(root, 'public/models')
/** All that one does with the built page, on one of the devices. */
export function flows(device: 'webgpu' | 'cpu'): void {
  const gpu = device === 'webgpu'
  let host: Host
  let site: Site
  let tab: Page
  let faults: string[]
  beforeAll(async () => {
    ;[host, site] = await Promise.all([startBrowser(gpu), startSite()])
    ;({ tab, faults } = await open(host, site.url))
    if (gpu) await choose(tab, 'webgpu')
  })
  afterAll(async () => {
    await host?.close()
    await site?.close()
  })
  beforeEach(() => {
    faults.length = 0
  })
  afterEach(() => {
    expect(faults).toEqual([])
  })
  const view = (name: string) => tab.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name }).click()
  const button = (name: string) => tab.getByRole('button', { name, exact: true })

  describe('Decide', () => {
    beforeEach(() => view('decide'))

    test('says on which device, and answers as Node does', async () => {
      await expect.poll(() => tab.locator('.badge').textContent()).toContain(gpu ? 'swiftshader' : 'CPU')
      if (!gpu) expect(await tab.locator('.notice').textContent()).toMatch(/^Everything runs on the CPU \(no GPU: /)
      const there = await inNode(letter!.text, readQuestions(letter!.questions))
      expect(numbersIn(there).length).toBeGreaterThan(15)
      expectNear(await shown(tab), there)
      expect(await tab.locator('.figures').textContent()).toMatch(
        /ms latency.*183 tokens.*\d+ dispatches.*decider-nano-1/,
      )
      const bars = await tab.locator('.bars').first().locator('li').allTextContents()
      expect(bars).toEqual(['billing96.0 %', 'technical1.9 %', 'sales2.1 %'])
      await picture(tab, `${device}_decide`)
    })

    test('shows no answer but that to the text as it stands, however fast one types', async () => {
      const seen = await tab.evaluateHandle(() => {
        const seen: [string, string][] = []
        const text = document.querySelector<HTMLTextAreaElement>('#text')!
        new MutationObserver(() => {
          const raw = document.querySelector('#raw')?.textContent
          if (raw && seen.at(-1)?.[1] !== raw) seen.push([text.value, raw])
        }).observe(document.body, { subtree: true, childList: true, characterData: true })
        return seen
      })
      const typed = 'Please cancel my subscription.'
      await tab.getByRole('textbox', { name: 'Text' }).fill('')
      expect(await tab.locator('.bars output').count()).toBe(0)
      await tab.getByRole('textbox', { name: 'Text' }).pressSequentially(typed, { delay: 60 })
      await shown(tab)
      const questions = readQuestions(letter!.questions)
      const answers = (await seen.jsonValue()).filter(([text]) => text !== '')
      expect(answers.at(-1)![0]).toBe(typed)
      for (const [text, raw] of answers) expectNear(JSON.parse(raw), await inNode(text, questions))
    })

    test('says what is wrong with a question, and answers when it is right', async () => {
      const options = tab.getByLabel('Options, with commas')
      await options.fill('billing')
      await tab.getByText('2..255 options').waitFor()
      expect(await tab.locator('#raw').count()).toBe(0)
      await picture(tab, `${device}_decide_error`)
      await options.fill('billing, technical, sales')
      expect((await shown(tab)).answers.team).toMatchObject({ type: 'choice' })
    })

    test('takes questions as JSON, and shares a link and code', async () => {
      await tab.getByText('JSON', { exact: true }).click()
      const questions = { spam: { type: 'noul', instructions: 'Is this spam?' } }
      await tab.getByLabel('Questions as JSON').fill(JSON.stringify(questions))
      await tab.getByRole('textbox', { name: 'Text' }).fill('You have won a cruise.')
      await expect.poll(() => shown(tab).then(({ answers }) => Object.keys(answers))).toEqual(['spam'])
      await picture(tab, `${device}_decide_json`)
      const copied = async (name: string): Promise<string> => {
        await button(name).click()
        await tab.getByText('Copied').waitFor()
        await tab.getByText('Copied').waitFor({ state: 'detached' })
        return tab.evaluate(() => navigator.clipboard.readText())
      }
      const link = await copied('Share link')
      expect(link).toBe(tab.url())
      const curl = await copied('Copy as curl')
      expect(JSON.parse(/-d '(.*)'\n$/s.exec(curl)![1]!)).toEqual({ state: 'You have won a cruise.', questions })
      expect(await copied('Copy as TypeScript')).toContain('"You have won a cruise."')

      const other = await open(host, link)
      expect(await other.tab.getByRole('textbox', { name: 'Text' }).inputValue()).toBe('You have won a cruise.')
      expectNear(await shown(other.tab), await inNode('You have won a cruise.', { spam: yesNo('Is this spam?') }))
      expect(await shown(tab)).toEqual(await shown(other.tab)) // both tabs at once
      expect(other.faults).toEqual([])
      await other.tab.close()
      await tab.getByText('Form', { exact: true }).click()
      expect(await tab.locator('.question textarea').first().inputValue()).toBe('Is this spam?')
    })

    test('takes an image that is dropped, pasted, chosen or of the camera', async () => {
      const give = (type: 'drop' | 'paste') =>
        tab.evaluate(async (type) => {
          const canvas = new OffscreenCanvas(64, 64)
          canvas.getContext('2d')!.fillRect(0, 0, 64, 64)
          const data = new DataTransfer()
          data.items.add(new File([await canvas.convertToBlob()], 'black.png', { type: 'image/png' }))
          const init = { bubbles: true, cancelable: true }
          const event =
            type === 'drop'
              ? new DragEvent('drop', { ...init, dataTransfer: data })
              : new ClipboardEvent('paste', { ...init, clipboardData: data })
          document.querySelector('#text')!.dispatchEvent(event)
        }, type)
      const image = tab.getByAltText('What the questions are about')
      for (const way of ['drop', 'paste'] as const) {
        await give(way)
        await image.waitFor()
        await expect.poll(() => image.evaluate((img: HTMLImageElement) => img.naturalWidth)).toBe(64)
        if (way === 'drop') await picture(tab, `${device}_decide_image`)
        await button('Remove image').click()
        await image.waitFor({ state: 'detached' })
      }
      const [chooser] = await Promise.all([tab.waitForEvent('filechooser'), button('Add an image').click()])
      await chooser.setFiles({
        name: 'icon.svg',
        mimeType: 'image/svg+xml',
        buffer: readFileSync(join(root, 'demo/icon.svg')),
      })
      await image.waitFor()
      await button('Remove image').click()
      await button('Camera').click()
      await expect
        .poll(() => tab.locator('video').evaluate((video: HTMLVideoElement) => video.videoWidth))
        .toBeGreaterThan(0)
      await picture(tab, `${device}_camera`)
      await button('Take the picture').click()
      await image.waitFor()
      await button('A red disc').click()
      await image.waitFor()
      await expect.poll(async () => (await shown(tab)).answers).toMatchObject({ colour: { choice: 'red' } })
      await button('Review').click()
      await image.waitFor({ state: 'detached' })
      expect((await shown(tab)).answers).toHaveProperty('sentiment')
    })
  })

  describe('Speak', () => {
    const words = '/həlˈoʊ/'

    beforeEach(() => view('speak'))

    test('says a text, plays it and gives it as a file', async () => {
      await tab.getByRole('textbox', { name: 'Text' }).fill(words)
      await tab.getByLabel('CFG').fill('1')
      await button('Speak').click()
      await expect.poll(() => tab.locator('.ipa').textContent()).toBe('/həlˈoʊ/') // another was there before
      expect(await tab.locator('.figures').textContent()).toMatch(/s of speech.*s to the first sound.*real-time factor/)
      const position = tab.getByLabel('Position')
      await expect.poll(async () => Number(await position.inputValue())).toBeGreaterThan(0) // it is heard
      await picture(tab, `${device}_speak`)
      const [download] = await Promise.all([tab.waitForEvent('download'), button('Download WAV').click()])
      const heard = decodeWav(await readFile(await download.path()))

      const samples = mono(heard)
      expect(samples.reduce((most, x) => Math.max(most, Math.abs(x)), 0)).toBeGreaterThan(0.05)
      if (gpu) return // draws other codes where a sum is rounded in another order
      const cpu = await openDevice('cpu')
      const tts = await loadTts(join(models, 'zonos-nano'), { device: cpu, codec: join(models, 'dac-nano') })
      const options = { cfgScale: 1, speakingRate: 15, pitchStd: 20, sampling: { seed: 1 } }
      const spoken = await tts.say(words, options)
      await tts.dispose()
      expect(heard.rate).toBe(spoken.sampleRate)
      expect(samples.length).toBe(spoken.samples.length)
      const furthest = samples.reduce((most, x, i) => Math.max(most, Math.abs(x - spoken.samples[i]!)), 0)
      expect(furthest).toBeLessThan(1e-4)
    })

    test('stops at once, and says the next', async () => {
      await button('Speak').click()
      await tab.locator('.figures', { hasText: 'speaking' }).waitFor()
      await button('Stop').click()
      expect(await tab.locator('.figures').textContent()).toBe('')
      await view('decide')
      await tab.getByRole('textbox', { name: 'Text' }).fill('The invoice is wrong.')
      await tab.locator('#raw').waitFor({ state: 'detached' })
      expect(await shown(tab)).toHaveProperty('model') // the engine is free again
    })

    test('reads a decision aloud', async () => {
      await view('decide')
      await shown(tab)
      await button('Read aloud').click()
      await button('Stop').click()
      await button('Read aloud').waitFor()
      await view('speak')
      expect(await tab.locator('[role=alert]').count()).toBe(0)
    })
  })

  describe('Models', () => {
    beforeEach(() => view('models'))

    test('loads nothing before a click, and says what each model takes', async () => {
      const card = tab.getByRole('article', { name: 'Mapika/decider-2b', exact: true })
      expect(await card.textContent()).toMatch(/huggingface\.co.*3\.76 GB.*2\.75 GB/)
      await expect
        .poll(() => tab.getByRole('article', { name: 'decider-nano' }).textContent())
        .toMatch(/16\.3 MB.*f32.*In use/)
      await picture(tab, `${device}_models`)
    })

    test('takes a model from a folder, and from dropped files', async () => {
      await tab.getByLabel('Folder of a model').setInputFiles(join(models, 'decider-nano'))
      const card = tab.locator('[aria-labelledby=yours]').getByRole('article')
      await card.getByRole('button', { name: 'In use' }).waitFor()
      await tab.evaluate(async () => {
        const data = new DataTransfer()
        for (const name of [
          'config.json',
          'model.safetensors',
          'tokenizer.json',
          'decider_config.json',
          'preprocessor_config.json',
        ]) {
          const response = await fetch(`models/decider-nano/${name}`)
          data.items.add(new File([await response.blob()], name))
        }
        document.body.dispatchEvent(new DragEvent('drop', { bubbles: true, dataTransfer: data }))
      })
      await tab.getByRole('article', { name: 'dropped files' }).getByRole('button', { name: 'In use' }).waitFor()
      await picture(tab, `${device}_models_dropped`)
      await view('decide')
      const text = 'The printer does not work.'
      await tab.getByRole('textbox', { name: 'Text' }).fill(text)
      await button('Support letter').click()
      expectNear(await shown(tab), await inNode(letter!.text, readQuestions(letter!.questions)))
    })

    test('brings a model from elsewhere, can be stopped, keeps it, and deletes it', async () => {
      const files = [
        'config.json',
        'preprocessor_config.json',
        'model.safetensors',
        'tokenizer.json',
        'tokenizer_config.json',
        'decider_config.json',
      ]
      const folder = join(models, 'decider-nano')
      const hub = await startHub(Object.fromEntries(files.map((name) => [name, readFileSync(join(folder, name))])))
      const where = `${hub.base}/plain/`
      const card = tab.getByRole('article', { name: where })
      hub.fault = ({ path, method }) => method === 'GET' && path.endsWith('model.safetensors') // no answer, for now
      await tab.getByLabel('Another Decider').fill(where)
      await tab.locator('form').getByRole('button').click()
      await card.getByRole('button', { name: 'Cancel' }).waitFor()
      await picture(tab, `${device}_models_loading`)
      await expect.poll(() => hub.log.some(({ path }) => path.endsWith('model.safetensors'))).toBe(true)
      await card.getByRole('button', { name: 'Cancel' }).click()
      await card.getByRole('button', { name: 'use' }).waitFor()

      hub.fault = undefined
      await card.getByRole('button', { name: 'use' }).click()
      await card.getByRole('button', { name: 'In use' }).waitFor()
      await expect.poll(() => card.textContent()).toMatch(/Cached16\.\d MB/)
      await picture(tab, `${device}_models_cached`)
      const own = tab.getByRole('article', { name: 'decider-nano' })
      await own.getByRole('button', { name: 'Use' }).click()
      await own.getByRole('button', { name: 'In use' }).waitFor()

      await hub.close() // out of the cache from here on
      await card.getByRole('button', { name: 'Use' }).click()
      await card.getByRole('button', { name: 'In use' }).waitFor()
      await own.getByRole('button', { name: 'Use' }).click()
      await own.getByRole('button', { name: 'In use' }).waitFor()
      await card.getByRole('button', { name: 'Delete' }).click()
      await card.getByText('Cached').waitFor({ state: 'detached' })
      faults.length = 0 // the hub is another origin, and was asked for
    })

    test('says what is missing from files', async () => {
      await tab.evaluate(() => {
        const data = new DataTransfer()
        data.items.add(new File(['{}'], 'tokenizer.json'))
        document.body.dispatchEvent(new DragEvent('drop', { bubbles: true, dataTransfer: data }))
      })
      await tab.getByText('The 1 files have no config.json').waitFor()
    })
  })

  test('Benchmark: three arms, in a table and as JSON', async () => {
    await view('benchmark')
    await tab.getByLabel('Rounds').fill('1')
    await button('Run').click()
    await button('Stop').click()
    await button('Run').click()
    await tab.locator('table').first().waitFor()
    await picture(tab, `${device}_benchmark`)
    const [download] = await Promise.all([tab.waitForEvent('download'), button('Download JSON').click()])
    const result = JSON.parse(readFileSync(await download.path(), 'utf8')) as BenchmarkResult
    expect(result).toMatchObject({ bench: 'browser', device, dtype: 'f32', runs: 1 })
    expect(result.largestDifference).toBeLessThan(1e-4)
    const requests = result.rows.filter(({ part }) => part === 'request')
    expect(requests.map(({ arm, case: name }) => `${name} ${arm}`).sort()).toEqual(
      ['long', 'short'].flatMap((name) => ['conv', 'optimized', 'reference'].map((arm) => `${name} ${arm}`)),
    )
    for (const { coldMs, minMs, medianMs, maxMs, dispatches } of requests) {
      expect(coldMs).toBeGreaterThan(0)
      expect(dispatches).toBeGreaterThan(0)
      expect([minMs, medianMs, maxMs].sort((a, b) => a - b)).toEqual([minMs, medianMs, maxMs])
    }
    const kernels = (arm: string) =>
      result.rows.filter((row) => row.part === 'kernel' && row.arm === arm).map((row) => row.case)
    expect(kernels('reference')).toContain('delta_rule')
    expect(kernels('optimized')).not.toEqual([])
  })
}
