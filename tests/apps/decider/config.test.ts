import { describe, expect, test } from 'vitest'
import { parseConfig } from '../../../src/apps/decider/config.ts'
import { temperatureOf } from '../../../src/apps/decider/temperature.ts'
import { WeightsError } from '../../../src/errors.ts'
import { nanoConfig } from './nano.ts'

const parse = (config: unknown) => parseConfig(JSON.stringify(config))
const refusal = (config: unknown) => {
  try {
    parse(config)
  } catch (error) {
    expect(error).toBeInstanceOf(WeightsError)
    return error as WeightsError
  }
  throw new Error(`accepted ${JSON.stringify(config)}`)
}

test('the nano model', () => {
  expect(nanoConfig).toEqual({
    name: 'decider-nano-1',
    calibrated: true,
    temperatures: { base: 2.992, byType: { choice: 2.798, noul: 3.108, score: 4.768 } },
    isolatedLevels: true,
    neutralizeNone: false,
    maxOptions: 32,
    maxStateTokens: 1536,
  })
})

test('no file: the defaults of the original', () => {
  expect(parseConfig(undefined)).toEqual({
    name: 'decider-dev',
    calibrated: false,
    temperatures: { base: 1, byType: {} },
    isolatedLevels: false,
    neutralizeNone: true,
    maxOptions: 255,
    maxStateTokens: 32768,
  })
})

test.each(['', '{', '[]', '7', 'null'])('a damaged file is refused: %j', (text) => {
  expect(() => parseConfig(text)).toThrow(WeightsError)
})

test.each([
  { isolated_levels: 1 },
  { neutralize_none: 'no' },
  { max_options: 1 },
  { max_state_tokens: 0.5 },
  { version: 7 },
])('a value of the wrong kind is refused: %j', (config) =>
  expect(refusal(config).message).toContain(Object.keys(config)[0]),
)

describe('the layout', () => {
  test.each([{}, { layout: 'plain' }, { chat_template: false }, { layout: 'plain', chat_template: false }])(
    '%j is plain',
    (config) => {
      expect(parse(config).name).toBe('decider-dev')
    },
  )
  test.each([{ layout: 'chat' }, { chat_template: true }, { layout: 'chat', chat_template: true }])(
    '%j is chat, which is not supported',
    (config) =>
      expect(refusal(config)).toMatchObject({
        code: 'unsupported',
        message: expect.stringContaining('layout is chat'),
      }),
  )
  test.each([{ layout: 'xml_v2' }, { layout: 'Chat' }, { layout: '' }, { layout: 'plain', chat_template: true }])(
    '%j is no layout',
    (config) =>
      expect(refusal(config)).toMatchObject({ code: 'format', message: expect.stringContaining('layout is') }),
  )
})

describe('temperatures', () => {
  const t = (config: unknown) => parse(config).temperatures

  test('by type, else the one value, else 1', () => {
    const mapped = t({ temperature: 1.3, temperature_by_type: { noul: 2, score: 1.5 } })
    expect((['choice', 'noul', 'score'] as const).map((type) => temperatureOf(mapped, type, 2))).toEqual([1.3, 2, 1.5])
    expect(temperatureOf(t({ temperature: ' 1.25 ' }), 'choice', 2)).toBe(1.25)
    expect(temperatureOf(t({}), 'score', 3)).toBe(1)
    expect(temperatureOf(mapped, 'noul', 2, 0.7)).toBe(0.7)
  })

  test('by the number of options', () => {
    const byOptions = t({ temperature: 3, temperature_by_options: { a: 10.124, b: -1.633 } })
    const at = (n: number) => temperatureOf(byOptions, 'choice', n)
    expect([2, 10, 151].map(at).map((x) => x.toFixed(4))).toEqual(['8.9921', '6.3639', '1.9308'])
    expect(at(1)).toBe(at(2))
    expect(temperatureOf(t({ temperature_by_options: { a: 0, b: -1 } }), 'noul', 9)).toBe(0.05)
    expect(temperatureOf(byOptions, 'choice', 2, 1.5)).toBe(1.5)
  })

  test.each([0, -1, 'x', '', true, null, [1], 'nan', 'inf'])('temperature %j is refused', (temperature) => {
    expect(refusal({ temperature }).message).toContain('temperature')
  })
  test.each([
    { bool: 1 },
    { scale: 1 },
    { Choice: 1 },
    { noul: 0 },
    { noul: '2.0' },
    { noul: true },
    { noul: null },
    [1],
    'x',
    null,
  ])('temperature_by_type %j is refused', (map) =>
    expect(refusal({ temperature_by_type: map }).message).toContain('temperature_by_type'),
  )
  test.each([{}, { a: 1 }, { a: 1, b: 'x' }, { a: 1, b: 1, min: 0 }, { a: 1, b: 1, c: 1 }, [], null])(
    'temperature_by_options %j is refused',
    (map) => expect(refusal({ temperature_by_options: map }).message).toContain('temperature_by_options'),
  )
  test('both maps are refused', () => {
    const both = { temperature_by_options: { a: 1, b: 1 }, temperature_by_type: { noul: 1 } }
    expect(refusal(both).message).toContain('no temperature_by_type beside it')
  })
})
