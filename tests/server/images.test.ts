import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import sharp from 'sharp'
import { describe, expect, test, vi } from 'vitest'
import type { Eyes } from '../../src/apps/decider/images.ts'
import { LIMITS } from '../../src/apps/decider/limits.ts'
import { choice, yesNo } from '../../src/apps/decider/question.ts'
import type { Scorer } from '../../src/apps/decider/scorer.ts'
import { cpuDevice } from '../../src/device/cpu.ts'
import { createServer } from '../../src/server.ts'
import { createBatcher } from '../../src/server/batcher.ts'
import { goldenImages, nanoEyes, nanoOn } from '../apps/decider/nano.ts'
import { fixturePath } from '../fixtures.ts'
import { dataUrl, deciderOf, get, hashScorer, post, read, serverOf } from './fake.ts'

const seeing = (scorer = hashScorer(), eyes = nanoEyes()) => deciderOf(scorer, { eyes })

const fileOf = (name: string): Uint8Array => readFileSync(fixturePath(`decider-nano/${name}`))
const red = fileOf('golden_image_red.png')
const colour = choice('What color is shown?', ['red', 'green', 'blue'])
const bright = yesNo('Is it bright?')
const state = 'Identify the dominant color in the image.'
const questions = { colour, bright }
const asking = (image: unknown, more: object = {}) => JSON.stringify({ state, questions, image, ...more })
/** The header of a PNG of so many pixels, and nothing behind it. */
const claiming = (width: number, height: number) => {
  const file = Uint8Array.from(red.subarray(0, 64))
  const view = new DataView(file.buffer)
  view.setUint32(16, width)
  view.setUint32(20, height)
  return file
}

describe('a request with an image', () => {
  const decider = seeing()
  const server = createServer({ decider })

  test.each([true, false])('has the answers of decide (independent: %s)', async (independent) => {
    const expected = await decider.decide(state, questions, { image: red, independent })
    const { colour, bright } = expected.answers
    const [status, body] = await read(post(server, '/v1/systemone', asking(dataUrl(red), { independent })))
    expect(status).toBe(200)
    const { answers, usage } = body as typeof expected & { usage: object }
    expect(answers.colour).toEqual(colour)
    expect(answers.bright).toEqual(bright)
    expect(usage).toEqual({ input_tokens: expected.usage.inputTokens, output_tokens: 0 })
    expect(expected.usage.inputTokens).toBeGreaterThan(49)
  })
  test('/decide takes one too', async () => {
    const schema = { 'What color?': { options: ['red', 'green', 'blue'] } }
    const expected = await decider.decideJson(state, schema, { image: red })
    expect(
      await read(post(server, '/decide', JSON.stringify({ context: state, schema, image: dataUrl(red) }))),
    ).toEqual([200, expected.answers])
  })
  test('without one, or with null, is about the text alone', async () => {
    const plain = await read(post(server, '/v1/systemone', asking(undefined)))
    expect(plain[0]).toBe(200)
    expect(await read(post(server, '/v1/systemone', asking(null)))).toEqual(plain)
    expect(await read(post(server, '/v1/systemone', asking(dataUrl(red))))).not.toEqual(plain)
  })
  test('the media type is not believed, and may be missing', async () => {
    const expected = await read(post(server, '/v1/systemone', asking(dataUrl(red))))
    for (const url of [dataUrl(red, 'text/plain;charset=utf-8'), dataUrl(red, '')])
      expect(await read(post(server, '/v1/systemone', asking(url)))).toEqual(expected)
  })
  test('those that come while a run is under way share the next, each with its own image', async () => {
    const { runs, score } = hashScorer()
    let open = () => {}
    const gate = new Promise<void>((resolve) => {
      open = resolve
    })
    const gated = { runs, score: (...asked: Parameters<typeof score>) => gate.then(() => score(...asked)) }
    const own = createServer({ decider: seeing(gated) })
    const bodies = ['red', 'green', 'blue'].map((name) => asking(dataUrl(fileOf(`golden_image_${name}.png`))))
    const posted = bodies.map((body) => read(post(own, '/v1/systemone', body)))
    const waiting = async () => ((await read(get(own, '/stats')))[1] as { outstanding_rows: number }).outstanding_rows
    while ((await waiting()) < 6) await new Promise((resolve) => setTimeout(resolve, 5))
    open()
    const together = await Promise.all(posted)
    expect(runs.map(({ rows }) => rows.length)).toEqual([2, 4])
    const alone = []
    for (const body of bodies) alone.push(await read(post(own, '/v1/systemone', body)))
    expect(together).toEqual(alone)
    expect(new Set(alone.map((answer) => JSON.stringify(answer))).size).toBe(3)
  })
  test('of a client that went away is not scored', async () => {
    const scorer = hashScorer()
    const own = createServer({ decider: seeing(scorer) })
    const abort = new AbortController()
    const left = post(own, '/v1/systemone', asking(dataUrl(red)), { signal: abort.signal })
    abort.abort()
    expect((await left).status).toBe(499)
    expect((await post(own, '/v1/systemone', asking(dataUrl(red)))).status).toBe(200)
    expect(scorer.runs).toHaveLength(1)
  })
  test('of a client that goes away while it is seen is not scored, nor that of one who waits for its turn', async () => {
    const scorer = hashScorer()
    const { see, before } = nanoEyes()
    const begun: (() => void)[] = [] // goes on with what was begun
    const ended: string[] = []
    const slow: Eyes = {
      see: async (options) => {
        await new Promise<void>((resolve) => void begun.push(resolve))
        const image = see(options)
        image.then(
          () => ended.push('seen'),
          () => ended.push('left'),
        )
        return image
      },
      before,
    }
    const own = createServer({ decider: seeing(scorer, slow) })
    const leave = [new AbortController(), new AbortController()]
    const [seen, waits] = leave.map(({ signal }) => post(own, '/v1/systemone', asking(dataUrl(red)), { signal }))
    const stays = post(own, '/v1/systemone', asking(dataUrl(red)))
    await vi.waitUntil(() => begun.length > 0)
    leave[1]!.abort()
    expect((await waits!).status, 'at once, though another is being seen').toBe(499)
    leave[0]!.abort()
    begun[0]!()
    expect((await seen!).status).toBe(499)
    await vi.waitUntil(() => begun.length > 1)
    begun[1]!()
    expect((await stays).status).toBe(200)
    expect(ended).toEqual(['left', 'seen'])
    expect(scorer.runs.map(({ rows }) => rows.length)).toEqual([2])
  })
  test('waits with so many others and no more, to be seen and to be scored', async () => {
    const { see, before } = nanoEyes()
    let go = () => {}
    const gate = new Promise<void>((resolve) => {
      go = resolve
    })
    const slow: Eyes = { see: (options) => gate.then(() => see(options)), before }
    const own = createServer({ decider: seeing(hashScorer(), slow), limits: { maxQueueImages: 2 } })
    const ask = () => post(own, '/v1/systemone', asking(dataUrl(red)))
    const [first, second] = [ask(), ask()]
    const third = await read(ask())
    expect(third).toEqual([503, { detail: expect.stringContaining('2 images queued, the limit is 2') }])
    go()
    expect([(await first).status, (await second).status, (await ask()).status]).toEqual([200, 200, 200])

    const scorer = hashScorer()
    const held: Scorer = { score: (...asked) => late.then(() => scorer.score(...asked)) }
    let open = () => {}
    const late = new Promise<void>((resolve) => {
      open = resolve
    })
    const limits = { ...LIMITS, maxQueueImages: 1 }
    const batcher = createBatcher(held, { limits, batchTokens: 1000 })
    const [image] = [await see({ image: red })]
    const row = { ids: [1, 2], slots: [1] }
    const one = batcher.score([
      { ...row, images: [image!] },
      { ...row, images: [image!] },
    ])
    await expect(batcher.score([{ ...row, images: [image!] }])).rejects.toThrow('1 images queued')
    const text = batcher.score([row])
    open()
    expect((await Promise.all([one, text])).map(({ length }) => length)).toEqual([2, 1])
    expect(await batcher.score([{ ...row, images: [image!] }])).toHaveLength(1)
  })
  test('is described in /openapi.json', async () => {
    const [, document] = await read(get(server, '/openapi.json'))
    const image = { type: ['string', 'null'], description: expect.stringContaining('data:image/png;base64,') }
    expect(document).toMatchObject({
      components: {
        schemas: { SystemOneRequest: { properties: { image } }, DecideRequest: { properties: { image } } },
      },
    })
  })
  test('is read at no more pixels than the server allows', async () => {
    const own = createServer({ decider: seeing(), maxPixels: 64 * 64 })
    const [, body] = await read(post(own, '/v1/systemone', asking(dataUrl(red))))
    const [, larger] = await read(post(server, '/v1/systemone', asking(dataUrl(red))))
    const tokens = (body: unknown) => (body as { usage: { input_tokens: number } }).usage.input_tokens
    expect(tokens(larger) - tokens(body)).toBe(49 - 4)
  })
})

describe('what is refused', () => {
  const server = createServer({ decider: seeing() })
  const refusal = async (image: unknown, own = server) => {
    const [status, body] = await read(post(own, '/v1/systemone', asking(image)))
    return [status, JSON.stringify((body as { detail: unknown }).detail)]
  }
  test.each([
    ['a number', 5, 'Input should be a valid string'],
    ['no URL', 'red.png', 'expected data:image/...;base64,...; nothing is fetched'],
    ['an address', 'https://example.org/a.png', 'nothing is fetched'],
    ['a file of the server', 'file:///etc/passwd', 'nothing is fetched'],
    ['text in a data URL', 'data:,hello', 'nothing is fetched'],
    ['no base64', 'data:image/png;base64,%%%%', 'are not base64'],
    ['nothing', 'data:image/png;base64,', 'is no PNG, JPEG, WebP or GIF'],
    ['another format', dataUrl(new TextEncoder().encode('<svg xmlns="http://www.w3.org/2000/svg"/>')), 'is no PNG'],
    ['half a file', dataUrl(red.subarray(0, red.length >> 1)), 'cannot be decoded'],
  ])('%s is 422', async (_, image, message) => {
    const fetched = vi.spyOn(globalThis, 'fetch')
    const [status, detail] = await refusal(image)
    expect(status).toBe(422)
    expect(detail).toContain(message)
    expect(fetched).not.toHaveBeenCalled()
    fetched.mockRestore()
  })
  test('a strip is 422', async () => {
    const strip = sharp({ create: { width: 402, height: 2, channels: 3, background: 'red' } }).png()
    expect(await refusal(dataUrl(await strip.toBuffer()))).toEqual([422, expect.stringContaining('402 x 2 pixels')])
  })
  test('too many pixels are 413, by the header alone', async () => {
    const [status, detail] = await refusal(dataUrl(claiming(60_000, 60_000)))
    expect([status, detail]).toEqual([
      413,
      expect.stringContaining('the image has 60000 x 60000, the limit is 16777216'),
    ])
    const small = createServer({ decider: seeing(), limits: { maxImagePixels: 100 } })
    expect((await refusal(dataUrl(red), small))[0]).toBe(413)
  })
  test('too many bytes are 413', async () => {
    const small = createServer({ decider: seeing(), maxBodyBytes: 1000 })
    expect(await refusal(`data:image/png;base64,${'A'.repeat(1000)}`, small)).toEqual([
      413,
      expect.stringContaining('more than 1000 bytes'),
    ])
    const body = asking(`data:image/png;base64,${'A'.repeat(5 * 2 ** 20)}`)
    expect((await post(server, '/v1/systemone', body)).status).toBe(422) // a model that sees takes 16 MiB
  })
  test('an image that makes the rows too long is 413', async () => {
    const short = createServer({ decider: seeing(), limits: { maxRowTokens: 60 } })
    expect(await refusal(dataUrl(red), short)).toEqual([413, expect.stringContaining('one row has')])
  })
  test('any image is, to a model that reads text', async () => {
    expect(await refusal(dataUrl(red), serverOf(hashScorer()))).toEqual([
      422,
      expect.stringContaining('reads text only'),
    ])
  })
  test('damaged files are answered or refused', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.nat(red.length),
        fc.array(fc.tuple(fc.nat(red.length - 1), fc.nat(255))),
        async (end, changes) => {
          const file = Uint8Array.from(red)
          for (const [at, value] of changes) file[at] = value
          const { status } = await post(server, '/v1/systemone', asking(dataUrl(file.subarray(0, end))))
          expect([200, 413, 422]).toContain(status)
        },
      ),
      { numRuns: 200 },
    )
  })
})

describe('the nano model over HTTP', () => {
  const loaded = nanoOn(async () => cpuDevice('test'))
  test('gives the reference’s probabilities of a golden image', async () => {
    const { context, questions, probs, image } = goldenImages.find(({ name }) => name.includes('stripes'))!
    const server = createServer({ decider: await loaded })
    const [{ question, options }] = questions as [(typeof questions)[number]]
    const body = JSON.stringify({ context, schema: { [question]: { options } }, image: dataUrl(fileOf(image)) })
    const [status, answers] = await read(post(server, '/decide', body))
    expect(status).toBe(200)
    const { probabilities } = (answers as Record<string, { probabilities: Record<string, number> }>)[question]!
    const drift = options.map((option, i) => Math.abs(probabilities[option]! - probs[0]![i]!))
    expect(Math.max(...drift)).toBeLessThanOrEqual(1e-4 + 5e-5) // four decimals are sent
  })
  test('answers as decide does, requests that come together too', async () => {
    const decider = await loaded
    const server = createServer({ decider })
    const images = ['red', 'green'].map((name) => fileOf(`golden_image_${name}.png`))
    const ask = { colour }
    const posted = images.map((image) =>
      read(post(server, '/v1/systemone', asking(dataUrl(image), { questions: ask }))),
    )
    for (const [i, sent] of (await Promise.all(posted)).entries()) {
      const { answers, usage } = await decider.decide(state, ask, { image: images[i]! })
      expect(sent[0]).toBe(200)
      expect(sent[1]).toMatchObject({ answers, usage: { input_tokens: usage.inputTokens } })
      expect(answers.colour.choice).toBe(['red', 'green'][i])
    }
  })
})
