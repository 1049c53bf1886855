import { describe, expect, test } from 'vitest'
import { parseConfig } from '../../../src/apps/decider/config.ts'
import { temperatureOf, withTemperatures } from '../../../src/apps/decider/temperature.ts'
import { InputError, WeightsError } from '../../../src/errors.ts'
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
    releaseDate: undefined,
    layout: 'plain',
    schemaFirst: false,
    schemaFirstTrained: false,
    calibrated: true,
    temperatures: { base: 2.992, byType: { choice: 2.798, noul: 3.108, score: 4.768 } },
    isolatedLevels: true,
    neutralizeNone: false,
    vision: true,
    maxOptions: 32,
    maxStateTokens: 1536,
  })
})

test('no file: the defaults of the original', () => {
  expect(parseConfig(undefined)).toEqual({
    name: 'decider-dev',
    releaseDate: undefined,
    layout: 'plain',
    schemaFirst: false,
    schemaFirstTrained: false,
    calibrated: false,
    temperatures: { base: 1, byType: {} },
    isolatedLevels: false,
    neutralizeNone: true,
    vision: false,
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
  { release_date: 2026 },
  { schema_first: 'yes' },
  { schema_first_trained: 1 },
])('a value of the wrong kind is refused: %j', (config) =>
  expect(refusal(config).message).toContain(Object.keys(config)[0]),
)

describe('the layout', () => {
  test.each([{}, { layout: 'plain' }, { chat_template: false }, { layout: 'plain', chat_template: false }])(
    '%j is plain',
    (config) => {
      expect(parse(config).layout).toBe('plain')
    },
  )
  test.each([{ layout: 'chat' }, { chat_template: true }, { layout: 'chat', chat_template: true }])(
    '%j is chat',
    (config) => expect(parse(config).layout).toBe('chat'),
  )
  test.each([{ layout: 'xml_v2' }, { layout: 'Chat' }, { layout: '' }, { layout: 'plain', chat_template: true }])(
    '%j is no layout',
    (config) =>
      expect(refusal(config)).toMatchObject({ code: 'format', message: expect.stringContaining('layout is') }),
  )
  test('chat models have no schema-first rows', () =>
    expect(refusal({ layout: 'chat', schema_first: true }).message).toContain(
      'schema_first is true beside layout chat',
    ))
})

test('the published 2B, as third parties read it', () => {
  const config = {
    ...{ version: '2b-v11', layout: 'plain', chat_template: false, schema_first: false, schema_first_trained: false },
    ...{ neutralize_none: false, isolated_levels: true, max_options: 255, max_state_tokens: 32768 },
    ...{ release_date: '2026-09-24', temperature: 1.145 },
    temperature_by_type: { choice: 1.164, noul: 1.624, score: 1.124 },
  }
  expect(parse(config)).toMatchObject({ name: 'decider-2b-v11', releaseDate: '2026-09-24', isolatedLevels: true })
})

describe('temperatures', () => {
  const t = (config: unknown) => parse(config).temperatures

  test('by type, else the one value, else 1', () => {
    const mapped = t({ temperature: 1.3, temperature_by_type: { noul: 2, score: 1.5 } })
    expect((['choice', 'noul', 'score'] as const).map((type) => temperatureOf(mapped, type, 2))).toEqual([1.3, 2, 1.5])
    expect(temperatureOf(t({ temperature: ' 1.25 ' }), 'choice', 2)).toBe(1.25)
    expect(temperatureOf(t({}), 'score', 3)).toBe(1)
    expect(temperatureOf(withTemperatures(mapped, { temperature: 0.7 }), 'noul', 2)).toBe(0.7)
  })

  test('of schema-first rows: their own map, their own value, the state-first ones', () => {
    const at = (config: unknown) =>
      (['choice', 'noul', 'score'] as const).map((type) => temperatureOf(t(config), type, 2, 'schema_first'))
    const stateFirst = { temperature: 1.3, temperature_by_type: { noul: 2, score: 1.5 } }
    const map = { temperature_schema_first_by_type: { choice: 0.9 } }
    expect(at({ ...stateFirst, ...map, temperature_schema_first: '1.1' })).toEqual([0.9, 1.1, 1.1])
    expect(at({ ...stateFirst, ...map })).toEqual([0.9, 2, 1.5])
    expect(at(stateFirst)).toEqual([1.3, 2, 1.5])
    expect(at({ temperature: 3, temperature_by_options: { a: 10, b: -1 } })).toEqual([3, 3, 3])
    for (const key of ['temperature_schema_first', 'temperature_schema_first_by_type'])
      expect(refusal({ [key]: 0 }).message).toContain(key)
  })

  test('overrides replace the state-first ones and leave the schema-first ones', () => {
    const own = t({ temperature: 1.3, temperature_by_type: { noul: 2 }, temperature_schema_first: 1.1 })
    const of = (options: Parameters<typeof withTemperatures>[1], ...order: ['schema_first'?]) =>
      (['choice', 'noul'] as const).map((type) => temperatureOf(withTemperatures(own, options), type, 2, ...order))
    expect(of({})).toEqual([1.3, 2])
    expect(of({ temperature: 0.5 })).toEqual([0.5, 0.5])
    expect(of({ temperatureByType: { choice: 3 } })).toEqual([3, 1.3])
    expect(of({ temperature: 0.5 }, 'schema_first')).toEqual([1.1, 1.1])
    for (const temperature of [0, -1, Number.NaN, Infinity, '2.0' as never, null as never])
      expect(() => withTemperatures(own, { temperature })).toThrow(InputError)
    expect(() => withTemperatures(own, { temperatureByType: { bool: 1 } as never })).toThrow(InputError)
  })

  test('by the number of options', () => {
    const byOptions = t({ temperature: 3, temperature_by_options: { a: 10.124, b: -1.633 } })
    const at = (n: number) => temperatureOf(byOptions, 'choice', n)
    expect([2, 10, 151].map(at).map((x) => x.toFixed(4))).toEqual(['8.9921', '6.3639', '1.9308'])
    expect(at(1)).toBe(at(2))
    expect(temperatureOf(t({ temperature_by_options: { a: 0, b: -1 } }), 'noul', 9)).toBe(0.05)
    expect(temperatureOf(withTemperatures(byOptions, { temperature: 1.5 }), 'choice', 2)).toBe(1.5)
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
