import { describe, expect, test } from 'vitest'
import { classifier } from '../../../src/apps/decider/classify.ts'
import { yesNo } from '../../../src/apps/decider/question.ts'
import type { RgbImage } from '../../../src/media/pixels.ts'
import { pinsOf, publishedPins, readPins, verify } from '../../../src/apps/decider/verify.ts'
import { logitsOf } from '../../server/fake.ts'
import { fakeDecider, logitsFor, nanoEyes, referenceCases } from './nano.ts'

const questions = { refund: yesNo('A refund?') }
const lines = (...rows: readonly (object | string)[]) =>
  rows.map((row, i) => ({ number: i + 1, text: typeof row === 'string' ? row : JSON.stringify(row) }))
const byHash = () => fakeDecider((row, slot) => [...logitsOf(row)[slot]!])

describe('classify', () => {
  test('rows that share their questions are scored together, and answers are those of decide', async () => {
    const { decider, calls } = byHash()
    const own = { other: { type: 'noul', instructions: 'Another?' } }
    const states = ['one', { two: [1, 2.5] }, 'three', 'four']
    const rows = states.map((state, i) => ({ id: i, state, ...(i > 1 && { questions: own }) }))
    const found = (await classifier(decider, questions)(lines(...rows))).map((line) => JSON.parse(line))
    expect(calls.map(({ rows }) => rows.length)).toEqual([2, 2])
    for (const [i, state] of states.entries()) {
      const asked = i > 1 ? { other: yesNo('Another?') } : questions
      expect(found[i]).toEqual({ row: i + 1, id: i, ...(await decider.decide(state, asked)) })
    }
  })
  test('a batch answers as its rows do alone', async () => {
    const classify = classifier(byHash().decider, questions)
    const rows = lines({ state: 'a' }, '{', { state: 'b' }, { state: 'c', questions: {} })
    const alone: string[] = []
    for (const row of rows) alone.push(...(await classify([row])))
    expect(await classify(rows)).toEqual(alone)
  })
  test.each([
    ['{', 'json: '],
    ['[]', 'the row has no state'],
    [{ id: 'x' }, 'the row has no state'],
    [{ id: 'x', state: 'a', questions: { q: { criteria: ['a'] } } }, "question 'q': "],
  ])('%j has an error, and the others are answered', async (row, said) => {
    const [bad, good] = await classifier(byHash().decider, questions)(lines(row, { state: 'a' }))
    const id = typeof row === 'object' ? { id: 'x' } : {}
    expect(JSON.parse(bad!)).toEqual({ row: 1, ...id, error: expect.stringContaining(said) })
    expect(JSON.parse(good!)).toMatchObject({ row: 2, answers: { refund: { type: 'noul' } } })
  })
  test('rows about images have the answers of decide; one that cannot be read has an error', async () => {
    const { decider } = fakeDecider((row, slot) => [...logitsOf(row)[slot]!], { eyes: nanoEyes() })
    const pixels = (value: number) => ({ width: 32, height: 32, data: new Uint8Array(3 * 32 * 32).fill(value) })
    const imageOf = (where: string) => (where === 'bad' ? new Uint8Array(3) : pixels(Number(where)))
    const rows = [{ image: '1' }, { image: '200' }, { image: null }, { image: 'bad' }, { image: 5 }]
    const found = await classifier(decider, questions, { imageOf })(
      lines(...rows.map((row) => ({ state: 'a', ...row }))),
    )
    const [dark, light, none, bad, wrong] = found.map((line) => JSON.parse(line))
    expect(dark.answers).toEqual((await decider.decide('a', questions, { image: pixels(1) })).answers)
    expect(light.answers).toEqual((await decider.decide('a', questions, { image: pixels(200) })).answers)
    expect(none.answers).toEqual((await decider.decide('a', questions)).answers)
    expect(bad.error).toContain('image: the file is no PNG')
    expect(wrong.error).toContain('image: has 5, expected text that names it')
    const [inline] = await classifier(decider, questions)(lines({ state: 'a', image: 'a.png' }))
    expect(JSON.parse(inline!).error).toContain('expected data:image')
  })
  test('rows without questions are refused where there are none for all', async () => {
    const [line] = await classifier(byHash().decider, undefined)(lines({ state: 'a' }))
    expect(JSON.parse(line!).error).toContain('the row has no questions')
  })
  test('numbers are kept as they are written', async () => {
    const big = '123456789012345678901234567890'
    const [line] = await classifier(byHash().decider, questions)(lines(`{"id":${big},"state":1.0}`))
    expect(line).toMatch(new RegExp(`^\\{"row":1,"id":${big},"model":"decider-nano-1","answers":`))
  })
  test('more kinds of questions than are remembered', async () => {
    const rows = Array.from({ length: 300 }, (_, i) => {
      return { state: 'a', questions: { q: { type: 'noul', instructions: `Is it ${i % 150}?` } } }
    })
    const found = await classifier(byHash().decider, undefined)(lines(...rows))
    const answers = found.map((line) => JSON.stringify(JSON.parse(line).answers))
    expect(answers.slice(150)).toEqual(answers.slice(0, 150))
    expect(new Set(answers).size).toBeGreaterThan(1)
  })
})

describe('verify', () => {
  const p = [0.7, 0.2, 0.1]
  const pins = (expected: readonly number[]) => ({
    ...{ source: 's', model: 'm', temperature: 1 },
    cases: [{ context: 'c', question: { question: 'q?', options: ['a', 'b', 'c'] }, expected }],
  })
  const { decider } = fakeDecider(() => logitsFor(p))
  test.each([
    [p, 0, true],
    [[0.69, 0.21, 0.1], 0.01, true],
    [[0.67, 0.23, 0.1], 0.03, false],
  ])('%j: drift %d, near enough: %s', async (expected, drift, ok) => {
    const [found] = await verify(decider, pins(expected))
    expect(found).toMatchObject({ expected, ok, drift: expect.closeTo(drift, 6) })
  })
  test('another choice is different unless it was a close call', async () => {
    const { decider } = fakeDecider(() => logitsFor([0.465, 0.475, 0.06]))
    expect((await verify(decider, pins([0.475, 0.465, 0.06])))[0]!.ok).toBe(true)
    const far = fakeDecider(() => logitsFor([0.45, 0.49, 0.06]))
    expect((await verify(far.decider, pins([0.49, 0.43, 0.08])))[0]!.ok).toBe(false)
  })
  test('the published pins are those of the reference', () => {
    const { question, options, contexts, ...models } = referenceCases.mps_full_model
    for (const name of ['decider-0.8b', 'decider-2b']) {
      const { revision, T, reference } = models[name]
      const found = pinsOf(`hf:Mapika/${name}`)
      expect(found.model).toBe(`hf:Mapika/${name}@${revision.split(' ')[0]}`)
      expect(found.temperature).toBe(T)
      expect(found.cases).toEqual(
        contexts.map((context: string, i: number) => ({
          context,
          question: { question, options },
          expected: reference[i],
        })),
      )
      expect(pinsOf(found.model)).toBe(found)
    }
    expect(publishedPins).toHaveLength(3)
    expect(() => pinsOf('hf:Mapika/decider')).toThrow('nothing is pinned for hf:Mapika/decider, expected hf:')
  })
  test('those of the model that sees are about images of one colour', async () => {
    const { revision, T, context, question, options, reference } = referenceCases.mps_full_model['decider-2b-vision']
    const found = pinsOf('hf:Mapika/decider-2b-vision')
    expect(found).toMatchObject({ model: `hf:Mapika/decider-2b-vision@${revision}`, temperature: T })
    const colours = [
      [255, 0, 0],
      [0, 128, 0],
      [0, 0, 255],
    ]
    for (const [i, { name, image, ...asked }] of found.cases.entries()) {
      expect(name).toBe(options[i])
      expect(asked).toEqual({ context, question: { question, options }, expected: reference[i] })
      const { width, height, data } = image as RgbImage
      expect([width, height, data.length]).toEqual([224, 224, 3 * 224 * 224])
      expect(data.every((value, at) => value === colours[i]![at % 3])).toBe(true)
    }
    const { decider } = fakeDecider(() => logitsFor(reference[0]), { eyes: nanoEyes() }) // sees red everywhere
    const verified = await verify(decider, found)
    expect(verified.map(({ name, ok }) => [name, ok])).toEqual([
      ['red', true],
      ['green', false],
      ['blue', false],
    ])
  })
  test('pins of one’s own may name images', async () => {
    const own = readPins({ ...pins(p), cases: [{ ...pins(p).cases[0], name: 'it', image: 'a.png' }] })
    const { decider } = fakeDecider(() => logitsFor(p), { eyes: nanoEyes() })
    const imageOf = () => ({ width: 32, height: 32, data: new Uint8Array(3 * 32 * 32) })
    expect((await verify(decider, own, { imageOf }))[0]).toMatchObject({ name: 'it', ok: true })
    await expect(verify(decider, own)).rejects.toThrow('expected data:image')
  })
  test.each([null, [], {}, pins(['a'] as never), pins([1]), { ...pins(p), cases: [] }])(
    '%j is no file of pins',
    (json) => {
      expect(() => readPins(json)).toThrow('pins: has other members')
    },
  )
  test('a file of pins is taken', () => expect(readPins(pins(p))).toEqual(pins(p)))
})
