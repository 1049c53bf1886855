import { describe, expect, test } from 'vitest'
import { evaluation, judge, type Prediction, predict, readExample } from '../../../src/apps/decider/evaluate.ts'
import { metricsOf } from '../../../src/apps/decider/metrics.ts'
import { readRecord } from '../../../src/apps/decider/records.ts'
import { reliabilitySvg } from '../../../src/apps/decider/reliability.ts'
import { fakeDecider, logitsFor, nanoEyes } from './nano.ts'

const written = { context: 'c', question: 'q?', options: ['a', 'b'], gold: 1, task: 't', type: 'noul' } as const
const row = { where: 'line 3', ...written }

describe('rows', () => {
  const read = (change: object) => readExample(JSON.stringify({ ...written, ...change }), 'line 3')
  test('are read, with defaults', () => {
    expect(read({})).toEqual(row)
    expect(read({ task: undefined, type: undefined, heldout: true })).toEqual({
      ...row,
      task: 'all',
      type: 'choice',
      heldout: true,
    })
  })
  test('may have an image', () => {
    expect(read({ image: 'a.png' })).toEqual({ ...row, image: 'a.png' })
    expect(read({ image: null })).toEqual(row)
  })
  test('without a known answer are left out', () => expect(read({ gold: -1 })).toBeUndefined())
  test.each([
    [{ context: 1 }, 'has other members'],
    [{ options: ['a', 2] }, 'has other members'],
    [{ options: 'ab' }, 'has other members'],
    [{ image: 1 }, 'has other members'],
    [{ gold: 2 }, 'gold has 2, expected 0 to 1'],
    [{ gold: 0.5 }, 'gold has 0.5'],
    [{ type: 'bool' }, 'type has "bool", expected choice, noul or score'],
  ])('%j is refused', (change, said) => expect(() => read(change)).toThrow(`line 3: ${said}`))
  test.each(['', '{', 'null', '[]', '1'])('%s is refused', (text) => {
    expect(() => readExample(text, 'line 3')).toThrow('line 3: ')
  })
})

const prediction = (p: readonly number[], gold: number, more: Partial<Prediction> = {}): Prediction => ({
  ...{ task: 't', type: 'choice', gold, logits: p.map(Math.log) },
  ...more,
})
const calibration = { base: 1, byType: { noul: 2 } }

describe('predictions', () => {
  test('are asked one question a row, all in one call, and keep ln p at temperature 1', async () => {
    const { decider, calls } = fakeDecider((_, __, i) => logitsFor(i === 0 ? [0.25, 0.75] : [0.5, 0.5]))
    const found = await predict(decider, [row, { ...row, gold: 0, heldout: false }])
    expect(calls.map(({ rows }) => rows.length)).toEqual([2])
    expect(found[0]).toEqual({
      task: 't',
      type: 'noul',
      gold: 1,
      logits: [expect.closeTo(Math.log(0.25)), expect.closeTo(Math.log(0.75))],
    })
    expect(found[1]).toMatchObject({ gold: 0, heldout: false })
  })
  test('about images are asked with them, and an example that cannot be asked is named', async () => {
    const { decider, calls } = fakeDecider(() => logitsFor([0.5, 0.5]), { eyes: nanoEyes() })
    const data = Uint8Array.from({ length: 3 * 64 * 64 }, (_, i) => i)
    const asked: string[] = []
    const imageOf = (where: string) => {
      asked.push(where)
      return { width: 64, height: where === 'a.png' ? 64 : 0, data }
    }
    await predict(decider, [row, { ...row, image: 'a.png' }], { imageOf, maxPixels: 32 * 32 })
    expect(asked).toEqual(['a.png'])
    expect(calls[0]!.rows.map(({ images }) => images?.map(({ tokens }) => tokens))).toEqual([undefined, [1]])
    const bad = { ...row, where: 'line 7', image: 'b.png' }
    const found = predict(decider, [row, { ...row, image: 'a.png' }, bad], { imageOf })
    await expect(found).rejects.toThrow('line 7: image: has 64 x 0 pixels')
    await expect(predict(decider, [bad])).rejects.toThrow('line 7: image: begins with "b.png", expected data:image')
  })
  test('of probability 0 are numbers that JSON has', async () => {
    const { decider } = fakeDecider(() => [0, -2000, ...Array<number>(97).fill(0)])
    const [found] = await predict(decider, [row])
    expect(JSON.parse(JSON.stringify(found))).toEqual(found)
    expect(judge(found!, 1).p[1]).toBeCloseTo(0)
  })
  test('are judged at the temperature of their type, or at one for all', () => {
    const same = prediction([0.2, 0.8], 1, { type: 'noul' })
    expect(judge(same, calibration).p[1]).toBeCloseTo(2 / 3) // sqrt(.8) / (sqrt(.2) + sqrt(.8))
    expect(judge({ ...same, type: 'choice' }, calibration).p[1]).toBeCloseTo(0.8)
    expect(judge(same, 1).p[1]).toBeCloseTo(0.8)
  })
})

describe('an evaluation', () => {
  const predictions = [
    prediction([0.9, 0.1], 0, { task: 'a', heldout: false }),
    prediction([0.2, 0.8], 0, { task: 'a', heldout: false }),
    prediction([0.7, 0.3], 0, { task: 'b', heldout: true }),
    prediction([0.6, 0.4], 0, { task: 'c' }),
  ]
  const { results, agg, reliability } = evaluation(predictions, calibration)
  test('has the metrics of each task, of all rows, and means over tasks', () => {
    expect(Object.entries(results).map(([task, { n, acc, heldout }]) => [task, n, acc, heldout])).toEqual([
      ['a', 2, 0.5, false],
      ['b', 1, 1, true],
      ['c', 1, 1, undefined],
    ])
    expect(agg.rows).toEqual(metricsOf(predictions.map((p) => judge(p, calibration))))
    expect(agg.rows).toMatchObject({ n: 4, acc: 0.75, chance: 0.5 })
    expect(agg.tasks).toMatchObject({ tasks: 3, acc: 2.5 / 3 })
    expect(agg.in_task).toMatchObject({ tasks: 1, acc: 0.5 })
    expect(agg.heldout).toMatchObject({ tasks: 1, acc: 1 })
  })
  test('without a word about training has no means by it', () => {
    expect(evaluation([predictions[3]!], 1).agg).not.toHaveProperty('heldout')
  })
  test('is drawn: a bar for each bin, as high as its accuracy, and nothing that breaks the XML', () => {
    const svg = reliabilitySvg(reliability, agg.rows, 'a <model> & more')
    expect(reliability.map(({ n }) => n)).toEqual([1, 1, 1, 1])
    expect(svg.match(/<rect x=/g)).toHaveLength(4)
    expect(svg.match(/height="320.0" fill/g)).toHaveLength(3) // all right
    expect(svg).toContain('73 to 80 %: 1 questions, 0.0 % right')
    expect(svg).toContain('4 questions, accuracy 0.7500, ECE 0.')
    expect(svg).toContain('a &lt;model&gt; &amp; more')
  })
})

describe('records', () => {
  const read = (record: object) => readRecord(JSON.stringify(record), 'line 2')
  test('logits and probabilities, of options and of levels', () => {
    const logits = [Math.log(0.25), Math.log(0.75)]
    expect(read({ type: 'noul', logits, gold: 1 })).toEqual({ type: 'noul', logits, gold: 1 })
    expect(read({ type: 'choice', probs: [0.25, 0.75], gold: 0 })).toEqual({ type: 'choice', logits, gold: 0 })
    const levels = [logits, logits]
    expect(read({ type: 'score', level_logits: levels, gold: 1 })).toEqual({ type: 'score', levels, gold: 1 })
    const probs = [
      [0.25, 0.75],
      [0.25, 0.75],
    ]
    expect(read({ type: 'score', level_probs: probs, gold: 1 })).toEqual({ type: 'score', levels, gold: 1 })
  })
  test('a prediction is one', () => {
    const found = prediction([0.5, 0.5], 1)
    expect(read(found)).toEqual({ type: 'choice', logits: found.logits, gold: 1 })
  })
  test.each([
    [{ type: 'bool', logits: [1, 2], gold: 0 }, 'type has "bool"'],
    [{ type: 'choice', gold: 0 }, 'has no numbers'],
    [{ type: 'choice', logits: [1, '2'], gold: 0 }, 'has no numbers'],
    [{ type: 'choice', logits: [1], gold: 0 }, 'gold has 0 of 1'],
    [{ type: 'choice', logits: [1, 2], gold: 2 }, 'gold has 2 of 2'],
    [
      {
        type: 'choice',
        level_logits: [
          [1, 2],
          [1, 2],
        ],
        gold: 0,
      },
      'levels of type choice',
    ],
    [{ type: 'score', level_logits: [[1, 2], [1]], gold: 0 }, 'has no numbers'],
  ])('%j is refused', (record, said) => expect(() => read(record)).toThrow(`line 2: ${said}, expected {"type"`))
  test.each([{ probs: [-1, 2] }, { probs: [0, 0] }, { logits: [1, null] }])('%j is no distribution', (numbers) =>
    expect(() => read({ type: 'choice', gold: 0, ...numbers })).toThrow('line 2: has no numbers'),
  )
  test.each(['{', 'null', '7'])('%s is refused', (text) => expect(() => readRecord(text, 'line 2')).toThrow('line 2: '))
})
