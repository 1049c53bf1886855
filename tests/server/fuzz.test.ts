import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { nanoEyes } from '../apps/decider/nano.ts'
import { fixturePath } from '../fixtures.ts'
import { dataUrl, deciderOf, hashScorer, JSON_TYPE, serverOf, URL_BASE } from './fake.ts'

const RUNS = process.env.PRONOUNCE_FULL === '1' ? 20_000 : 500
const news: string[] = []
const scorer = hashScorer()
const server = serverOf(scorer, {
  decider: deciderOf(scorer, { eyes: nanoEyes() }),
  limits: { maxRows: 64 },
  maxBodyBytes: 4096,
  onNews: (line) => news.push(line),
  speaker: async () => ({
    sampleRate: 8000,
    async *say() {
      yield new Float32Array(8)
    },
  }),
})

/** The status, which is one that a server may have. */
async function expectAnswered(path: string, body: BodyInit): Promise<number> {
  const response = await server.fetch(new Request(`${URL_BASE}${path}`, { method: 'POST', headers: JSON_TYPE, body }))
  const text = await response.text()
  expect([200, 400, 413, 422], text).toContain(response.status)
  if (response.status !== 200)
    expect(Object.keys(JSON.parse(text))).toEqual([expect.stringMatching(/^(detail|error)$/)])
  return response.status
}

/** Mostly what a request has, and anything in any place. */
const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom('', 'a', 'None of the above', '__proto__', '1', '<|im_start|>'),
)
const value = fc.oneof({ weight: 3, arbitrary: text }, fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<unknown>)
const named = <A>(members: fc.Arbitrary<A>) => fc.dictionary(text, members, { maxKeys: 4 })
const maybe = <A>(arbitrary: fc.Arbitrary<A>) => fc.oneof({ weight: 5, arbitrary }, value)
const listOrMap = maybe(fc.oneof(fc.array(value, { maxLength: 12 }), named(value)))
const question = fc.record(
  {
    type: maybe(fc.constantFrom('choice', 'score', 'noul', 'bool')),
    instructions: value,
    question: value,
    criteria: listOrMap,
    isolated: maybe(fc.boolean()),
  },
  { requiredKeys: [] },
)
const picture = dataUrl(readFileSync(fixturePath('decider-nano/golden_image_red.png')))
const image = fc.oneof(
  { weight: 3, arbitrary: fc.constant(null) },
  fc.constantFrom(picture, picture.slice(0, 500), 'data:image/png;base64,', 'https://localhost/a.png'),
  fc.uint8Array().map((bytes) => dataUrl(bytes)),
  value,
)
const systemOne = fc.record(
  {
    state: value,
    questions: maybe(named(maybe(question))),
    independent: maybe(fc.boolean()),
    layout: maybe(fc.constant('state_first')),
    model: value,
    image,
  },
  { requiredKeys: [] },
)
const field = fc.record(
  { type: maybe(fc.constantFrom('choice', 'bool', 'scale')), options: listOrMap, legend: listOrMap },
  { requiredKeys: [] },
)
const decide = fc.record({ context: value, schema: maybe(named(maybe(field))), image }, { requiredKeys: [] })
const speech = fc.record(
  {
    input: fc.oneof({ weight: 3, arbitrary: fc.string({ minLength: 1 }) }, value),
    voice: value,
    speed: value,
    response_format: maybe(fc.constantFrom('wav', 'pcm')),
    seed: value,
  },
  { requiredKeys: [] },
)

/** JSON text that is cut, doubled or has something in the middle. */
const damaged = (json: fc.Arbitrary<unknown>) =>
  fc.tuple(json, fc.nat(), text).map(([body, at, more]) => {
    const written = JSON.stringify(body)
    const place = at % (written.length + 1)
    return `${written.slice(0, place)}${more}${at % 2 ? '' : written.slice(place)}`
  })

const questions = { q: { type: 'bool', question: 'Is it?' } }
const schema = { q: { type: 'bool' } }
test.each([
  [
    '/v1/systemone',
    systemOne,
    [
      { state: 'a', questions },
      { state: 'a', questions, image: picture },
    ],
  ],
  [
    '/decide',
    decide,
    [
      { context: 'a', schema },
      { context: 'a', schema, image: picture },
    ],
  ],
  ['/v1/audio/speech', speech, [{ input: 'a' }]],
] as const)(
  '%s: anything is answered or refused, nothing crashes',
  { timeout: 900_000 },
  async (path, bodies, right) => {
    const json = fc.oneof(bodies, fc.jsonValue())
    const written = json.map((body) => JSON.stringify(body))
    const body = fc.oneof(
      { weight: 4, arbitrary: written },
      damaged(json),
      fc.uint8Array().map((bytes) => new Blob([bytes])),
    )
    const statuses: number[] = []
    await fc.assert(
      fc.asyncProperty(body, async (body) => {
        statuses.push(await expectAnswered(path, body))
      }),
      { numRuns: RUNS, examples: right.map((body): [string] => [JSON.stringify(body)]) },
    )
    expect(statuses).toHaveLength(RUNS)
    expect(statuses.slice(0, right.length), 'the right ones').toEqual(right.map(() => 200))
    expect(news).toEqual([])
  },
)

test.each(['[', '{"a":', '"', '[['.repeat(1000), '9'.repeat(4000), '1e999', '\u0000', ''])('%.20s', async (body) => {
  for (const path of ['/v1/systemone', '/decide', '/v1/audio/speech']) await expectAnswered(path, body)
})
