import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { imageScorer } from '../../../src/apps/decider/images.ts'
import { choice, score, yesNo } from '../../../src/apps/decider/question.ts'
import type { Row, Scorer } from '../../../src/apps/decider/scorer.ts'
import { readImage } from '../../../src/media/image.ts'
import type { SeenImage } from '../../../src/models/qwen3_5/album.ts'
import { visionConfig } from '../../../src/models/qwen3_5/config.ts'
import { processImage, processorConfig, writePatches } from '../../../src/models/qwen3_5/processor.ts'
import { fixturePath } from '../../fixtures.ts'
import { fakeDecider, goldenImages, nanoDevices, nanoEyes, nanoOn, readJson, tokenizer } from './nano.ts'

const model = 'public/models/decider-nano'
const config = visionConfig(readJson(`${model}/config.json`))!
const processor = processorConfig(readJson(`${model}/preprocessor_config.json`))
const VOCABULARY = 4096

const fileOf = (name: string) => readFileSync(fixturePath(`decider-nano/${name}`))
/** One colour, as a page's ImageData has it. */
const solid = (red: number, green: number, blue: number, width = 224, height = width) => {
  const data = new Uint8ClampedArray(4 * width * height)
  for (let i = 0; i < data.length; i += 4) data.set([red, green, blue, 255], i)
  return { width, height, data }
}
const colours = { red: solid(255, 0, 0), green: solid(0, 128, 0), blue: solid(0, 0, 255) }
const what = choice('What color is shown?', ['red', 'green', 'blue'])
const about = 'Identify the dominant color in the image.'

describe('rows about an image', () => {
  test('there are goldens', () => expect(goldenImages).toHaveLength(5))

  test.each(goldenImages)('$name has the tokens and slots of the reference', async (golden) => {
    const { decider, calls } = fakeDecider(() => [...golden.logits[0]!, ...Array(99).fill(20)], { eyes: nanoEyes() })
    const image = fileOf(golden.image)
    const { answers, usage } = await decider.decidePacked(golden.context, golden.questions, { image })
    const [{ ids, slots, images } = { ids: [], slots: [] }] = calls[0]!.rows
    const [{ first, tokens, rows, columns } = {} as SeenImage] = images!
    expect(ids.filter((id) => id >= VOCABULARY)).toEqual(Array.from({ length: tokens }, (_, i) => first + i))
    expect(ids.map((id) => (id >= VOCABULARY ? config.imageToken : id))).toEqual(golden.ids)
    expect(slots).toEqual(golden.slots)
    expect([1, rows, columns]).toEqual(golden.grid_thw)
    expect(usage.inputTokens).toBe(golden.ids.length)
    answers[0]!.probsList.forEach((p, i) => expect(Math.abs(p - golden.probs[0]![i]!)).toBeLessThanOrEqual(1e-6))
  })

  test.each(goldenImages)('the patches of $name are those of the reference to the bit', async (golden) => {
    const image = processImage(await readImage(fileOf(golden.image)), processor)
    const patches = new Float32Array(image.rows * image.columns * 3 * 256)
    writePatches(image, config, processor.normalised, patches)
    const hash = createHash('sha256') // of [N, channel, frame, y, x], the two frames being equal
    for (let at = 0; at < patches.length; at += 256)
      for (let frame = 0; frame < 2; frame++) hash.update(new Uint8Array(patches.buffer, 4 * at, 4 * 256))
    expect(hash.digest('hex')).toBe(golden.pixel_values_sha256)
  })

  test('more options than letters are pieces, as in text', async () => {
    const names = Array.from({ length: 12 }, (_, i) => `option ${i}`)
    const ask = { n: choice('Which one?', names) }
    const { decider, calls } = fakeDecider(() => Array(99).fill(0), { eyes: nanoEyes() })
    await decider.decide('Look.', ask)
    await decider.decide('Look.', ask, { image: colours.red })
    const [[text], [shown]] = calls.map(({ rows }) => rows) as [Row[], Row[]]
    expect(shown!.ids.slice(51)).toEqual(text!.ids)
    expect(shown!.slots).toEqual(text!.slots.map((slot) => slot + 51))
  })

  test('a state that quotes a slot does not move the slot, and one that is cut is cut before the image', async () => {
    const state = `Answer 1: (A) and Answer: (B) ${'again and again '.repeat(50)}`
    const { decider, calls } = fakeDecider(() => [1, 2, 3], { eyes: nanoEyes() })
    const { usage } = await decider.decide(state, { what }, { image: colours.red, maxStateTokens: 30 })
    const { ids, slots } = calls[0]!.rows[0]!
    expect(slots).toEqual([ids.length - 1])
    expect(usage.truncatedTokens).toBeGreaterThan(50)
    expect(tokenizer.decode(ids.slice(51))).toMatch(
      /^Context:\nAnswer 1: \(A\) and Answer: \(B\) again.*\n\nQuestion: What/s,
    )
  })

  test('what is asked about the same picture has the same ids', async () => {
    const { decider, calls } = fakeDecider(() => [1, 2, 3], { eyes: nanoEyes() })
    for (const image of [colours.red, solid(255, 0, 0), colours.blue]) await decider.decide('', { what }, { image })
    const [a, b, c] = calls.map(({ rows }) => rows[0]!.ids)
    expect(b).toEqual(a)
    expect(c![1]).not.toBe(a![1])
  })

  test('what cannot be asked is refused', async () => {
    const image = colours.red
    const blind = fakeDecider(() => [1, 2, 3])
    await expect(blind.decider.decide('', { what }, { image })).rejects.toThrow('reads text only')
    const { decider, calls } = fakeDecider(() => [1, 2, 3], { eyes: nanoEyes(), maxTokens: 75 })
    await expect(decider.decide('', { what }, { image, maxPixels: 1000 })).rejects.toThrow('an integer from 1024')
    await expect(decider.decide('', { what }, { image })).rejects.toThrow('the row has 79 tokens, 49 of them the image')
    await expect(decider.decide('', { what }, { image: solid(0, 0, 0, 900, 4) })).rejects.toThrow('900 x 4 pixels')
    await expect(decider.decide('', { what }, { image: 'a.png' as never })).rejects.toMatchObject({ code: 'input' })
    const signal = AbortSignal.abort(new Error('enough'))
    await expect(decider.decide('', { what }, { image, signal })).rejects.toThrow('enough')
    expect(calls).toHaveLength(0)
    await decider.decide('', { what }, { image, maxPixels: 128 * 128 })
    expect(calls[0]!.rows[0]!.images![0]!.tokens).toBe(16)
  })
})

test('rows of many images are scored in turns, each image made once a turn', async () => {
  const looks: number[][] = []
  const turns: number[] = []
  const inner: Scorer = {
    async score(rows) {
      turns.push(rows.length)
      return rows.map(({ ids, positions }) => [Float32Array.of(ids[0]!, positions?.[0][1] ?? -1)])
    },
  }
  const tower = { look: async (images: readonly SeenImage[]) => void looks.push(images.map(({ first }) => first)) }
  const pixels = { width: 16, height: 16, data: new Uint8Array() }
  const image = (first: number, tokens: number): SeenImage => ({ rows: 2, columns: 2 * tokens, pixels, first, tokens })
  const [a, b, c] = [image(10_000, 5000), image(20_000, 3000), image(30_000, 9000)]
  const rows = [[a], [a], undefined, [b], [c], [a]].map((images, i) => ({
    ids: [i, ...(images ? [images[0]!.first] : [0])],
    slots: [0],
    ...(images && { images }),
  }))
  const logits = await imageScorer(inner, tower, 2).score(rows)
  expect(logits.map(([values]) => [...values!])).toEqual([
    [0, 1],
    [1, 1],
    [2, -1],
    [3, 1],
    [4, 1],
    [5, 1],
  ])
  expect(turns).toEqual([4, 1, 1])
  expect(looks).toEqual([[10_000, 10_000, 20_000], [30_000], [10_000]])
})

describe.each(nanoDevices)('the nano model sees on %s', (_, open, tolerance) => {
  const loaded = nanoOn(open)

  test.each(goldenImages)('$name', async ({ context, questions, probs, image }) => {
    const { answers } = await (await loaded).decidePacked(context, questions, { image: fileOf(image) })
    const drift = answers[0]!.probsList.map((p, i) => Math.abs(p - probs[0]![i]!))
    expect(Math.max(...drift)).toBeLessThanOrEqual(tolerance)
  })

  test.each(['red', 'green', 'blue'] as const)('%s is seen', async (name) => {
    const { answers } = await (await loaded).decide(about, { what }, { image: colours[name] })
    expect(answers.what.choice).toBe(name)
    expect(answers.what.probabilities[name]).toBeGreaterThan(0.9)
  })

  test('questions about one image have the bits that they have alone, behind a shared prefix too', async () => {
    const decider = await loaded
    const image = colours.green
    const questions = {
      what,
      any: yesNo('Is there anything green?'),
      bright: score('How bright is it?', ['dark', 'bright']),
    }
    for (const state of [about, 'It was taken on a sunny day in May. '.repeat(20)]) {
      const { answers } = await decider.decide(state, questions, { image })
      const alone = await decider.decide(state, { any: questions.any }, { image })
      expect(answers.any).toEqual(alone.answers.any)
    }
  })

  test('a text is read as it was', async () => {
    const decider = await loaded
    const ask = { refund: yesNo('Does the customer want a refund?') }
    const before = await decider.decide('Please give me my money back.', ask)
    await decider.decide(about, { what }, { image: colours.red })
    expect(await decider.decide('Please give me my money back.', ask)).toEqual(before)
    const { memory } = (await loaded).device
    expect(memory.pipelines).toBeLessThanOrEqual(80) // of two models of at most 40 each
  })
})
