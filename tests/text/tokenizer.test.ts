import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { WeightsError } from '../../src/errors.ts'
import { createTokenizer } from '../../src/text/tokenizer.ts'

const json = (path: string) => JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8'))
const nanoJson = json('../../public/models/decider-nano/tokenizer.json')
const nanoConfig = json('../../public/models/decider-nano/tokenizer_config.json')
const nano = createTokenizer(nanoJson, nanoConfig)

interface Case {
  readonly name: string
  readonly text: string
  readonly joined: number[]
  readonly nano: number[]
}
/**
 * Ids by Hugging Face's tokenizers 0.23.2 in Python: of decider-nano, and of `model`, whose merges were learned without a
 * pre-tokenizer, so that a split at any other place gives other ids. Texts are traps and random mixtures of them.
 */
const { model, cases } = json('tokenizer_cases.json') as { model: object & { vocab: object }; cases: Case[] }
const firstAdded = Object.keys(model.vocab).length
const joinedJson = {
  ...nanoJson,
  model: { ...nanoJson.model, ...model },
  added_tokens: nanoJson.added_tokens.map((t: object, i: number) => ({ ...t, id: firstAdded + i })),
}
const joined = createTokenizer(joinedJson)

describe('against the Python tokenizers', () => {
  const named = cases.filter((c) => c.name !== 'random')
  test.each(named)('$name', ({ text, joined: joinedIds, nano: nanoIds }) => {
    expect(joined.encode(text)).toEqual(joinedIds)
    expect(nano.encode(text)).toEqual(nanoIds)
  })
  test('random texts', () => {
    expect(cases.length).toBeGreaterThan(400)
    for (const { text, joined: joinedIds, nano: nanoIds } of cases) {
      expect(joined.encode(text), JSON.stringify(text)).toEqual(joinedIds)
      expect(nano.encode(text), JSON.stringify(text)).toEqual(nanoIds)
    }
  })
  test('decoding gives the text back, composed', () => {
    for (const { text, joined: ids } of cases) expect(joined.decode(ids)).toBe(text.normalize('NFC'))
  })
})

interface Request {
  readonly name: string
  readonly context: string
  readonly questions: readonly { question: string; options: string[] }[]
  readonly ids: number[]
  readonly image?: string
}
const requests = json('../fixtures/decider-nano/golden.json').items as Request[]

test('every golden request of text begins with the ids of its pieces', () => {
  const texts = requests.filter((r) => r.image === undefined)
  expect(texts.length).toBe(36)
  for (const { name, context, questions, ids } of texts) {
    const state = nano.encode(`Context:\n${context}`).slice(0, 1536)
    expect(ids.slice(0, state.length), name).toEqual(state)
    // questions of up to ten options are one piece each
    if (questions.some((q) => q.options.length > 10)) continue
    const blocks = questions.flatMap(({ question, options }, i) => {
      const number = questions.length > 1 ? ` ${i + 1}` : ''
      const listed = options.map((option, j) => `\n(${'ABCDEFGHIJ'[j]}) ${option}`).join('')
      return nano.encode(`\n\nQuestion${number}: ${question}\nOptions:${listed}\nAnswer${number}: (`)
    })
    expect(ids, name).toEqual([...state, ...blocks])
  }
})

describe('special tokens', () => {
  test('are found by name', () => {
    expect(nano.id('<|im_start|>')).toBe(4079)
    expect(nano.id('A')).toBe(32)
    expect(nano.id('no such token')).toBeUndefined()
    expect(nano.size).toBe(4086)
  })
  test('that only tokenizer_config.json has are added', () => {
    const extra = { 4086: { content: '<|audio_start|>', special: true } }
    const t = createTokenizer(nanoJson, { added_tokens_decoder: { ...nanoConfig.added_tokens_decoder, ...extra } })
    expect(t.encode('<|audio_start|>a')).toEqual([4086, ...t.encode('a')])
    expect(t.decode([4086])).toBe('<|audio_start|>')
    expect(t.size).toBe(4087)
  })
})

test('a lone surrogate is U+FFFD', () => {
  for (const text of ['\ud83d', 'a\ude00b', '\ude00\ud83d', 'x\ud83d']) {
    const ids = joined.encode(text)
    expect(ids).toEqual(joined.encode(text.replace(/[\ud800-\udfff]/g, '\ufffd')))
    expect(ids.length).toBeGreaterThan(0)
  }
})

test('bytes that are no UTF-8 decode to U+FFFD', () => {
  const [first] = nano.encode('\u0900')
  expect(nano.decode([first!])).toBe('\ufffd')
  expect(nano.decode([])).toBe('')
  expect(nano.decode(Uint32Array.from(nano.encode(' a , b .')))).toBe(' a , b .') // spaces are not cleaned up
  expect(() => nano.decode([4086])).toThrow('decode: id 4086 is no token, expected 0 to 4085')
})

test('100,000 characters take no quadratic time', () => {
  const n = 100_000
  const texts = ['a', ' ', '\n ', '!', '漢', '😀', '𝐀', '\u0301', '<|im_start', 'Hello world. ', '\t\r\n', "'s"]
  for (const text of texts) {
    const long = text.repeat(n / text.length)
    const start = performance.now()
    expect(nano.encode(long).length).toBeGreaterThan(0)
    expect(performance.now() - start, JSON.stringify(text)).toBeLessThan(5000)
  }
})

describe('a tokenizer.json that is not understood is an error', () => {
  const split = nanoJson.pre_tokenizer.pretokenizers[0]
  const withSplit = (changes: object) => ({ pre_tokenizer: { ...split, ...changes } })
  const withModel = (changes: object) => ({ model: { ...nanoJson.model, ...changes } })
  const added = (...changes: object[]) => ({ added_tokens: changes })
  test.each<[string, unknown]>([
    ['no object', null],
    ['a list', []],
    ['a string', 'tokenizer'],
    ['no model', { ...nanoJson, model: undefined }],
    ['another model', { ...nanoJson, ...withModel({ type: 'Unigram' }) }],
    ['no vocab', { ...nanoJson, ...withModel({ vocab: null }) }],
    ['no merges', { ...nanoJson, ...withModel({ merges: undefined }) }],
    ['an id that is no number', { ...nanoJson, ...withModel({ vocab: { a: 'b' } }) }],
    ['an id twice', { ...nanoJson, ...withModel({ vocab: { a: 1, b: 1 } }) }],
    ['merges that are no strings', { ...nanoJson, ...withModel({ merges: [1, 2] }) }],
    ['an unknown normalizer', { ...nanoJson, normalizer: { type: 'NFX' } }],
    ['an unknown pre-tokenizer', { ...nanoJson, pre_tokenizer: { type: 'Magic' } }],
    ['an unknown decoder', { ...nanoJson, decoder: { type: 'Magic' } }],
    ['a bad regex', { ...nanoJson, ...withSplit({ pattern: { Regex: '(' } }) }],
    ['no pattern', { ...nanoJson, ...withSplit({ pattern: {} }) }],
    ['a split that merges', { ...nanoJson, ...withSplit({ behavior: 'MergedWithNext' }) }],
    ['an inverted split', { ...nanoJson, ...withSplit({ invert: true }) }],
    ['added tokens without id', { ...nanoJson, ...added({ content: 'x' }) }],
    ['added tokens without content', { ...nanoJson, ...added({ id: 5000, content: '' }) }],
    ['an added token on a used id', { ...nanoJson, ...added({ id: 0, content: '<|x|>' }) }],
    ['an added token that the vocabulary has', { ...nanoJson, ...added({ id: 5000, content: 'A' }) }],
    ['words only', { ...nanoJson, ...added({ id: 5000, content: '<|x|>', single_word: true }) }],
  ])('%s', (_, broken) => {
    expect(() => createTokenizer(broken)).toThrow(WeightsError)
  })
  test('a bad tokenizer_config.json', () => {
    expect(() => createTokenizer(nanoJson, { added_tokens_decoder: [] })).toThrow(WeightsError)
    expect(() => createTokenizer(nanoJson, { added_tokens_decoder: { x: { content: '<|x|>' } } })).toThrow(WeightsError)
  })
})
