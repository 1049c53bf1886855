import { describe, expect, test } from 'vitest'
import { dumps, type JsonValue, renderState } from '../../../src/apps/decider/json.ts'
import { readFloat, round, spellNumber, strip } from '../../../src/apps/decider/python.ts'
import { referenceCases } from './nano.ts'

describe('round', () => {
  const stored: [number, number][] = referenceCases.python_rounding_ties
  test('there are stored ties', () => expect(stored).toHaveLength(4))
  test.each([
    ...stored,
    [0.28125, 0.2812],
    [-0.03125, -0.0312],
    [-0.09375, -0.0938],
    [1.03125, 1.0312],
    [0.00005, 0.0001], // the binary value is above the tie
    [0.00015, 0.0001], // and here below it
    [0.12345, 0.1235],
    [0.99995, 1], // above it again
    [0.00025, 0.0003],
    [0.99999, 1],
    [0, 0],
    [1, 1],
    [1e21, 1e21],
  ])('%f to 4 decimals is %f', (x, expected) => expect(round(x, 4)).toBe(expected))
  test.each([
    [0.125, 0.12],
    [0.375, 0.38],
    [2.675, 2.67],
    [1.005, 1],
    [2.5, 2.5],
    [2 ** 46 + 0.625, 70368744177664.62], // more digits than 100 x holds,
  ])('%f to 2 decimals is %f', (x, expected) => expect(round(x, 2)).toBe(expected))
})

describe('json.dumps', () => {
  const cases: [JsonValue, string][] = [
    [1, '1'],
    [-0, '-0.0'],
    [0.1, '0.1'],
    [1e15 + 0.5, '1000000000000000.5'],
    [1e16, '1e+16'],
    [123456789012345680, '1.2345678901234568e+17'],
    [9007199254740992, '9007199254740992.0'],
    [12345678901234567890n, '12345678901234567890'],
    [0.0001, '0.0001'],
    [0.00001, '1e-05'],
    [1.5e-7, '1.5e-07'],
    [1e300, '1e+300'],
    [Number.NaN, 'NaN'],
    [-Infinity, '-Infinity'],
    [[true, false, null], '[true, false, null]'],
    [{ a: 1, b: [1, { c: 'd' }] }, '{"a": 1, "b": [1, {"c": "d"}]}'],
    [{}, '{}'],
    [[], '[]'],
    ['"\\\n\t\b\f\r\u0001\u007f/é🙂\u2028', '"\\"\\\\\\n\\t\\b\\f\\r\\u0001\u007f/é🙂\u2028"'],
    [
      new Map([
        ['10', 1],
        ['9', 2],
      ]),
      '{"10": 1, "9": 2}',
    ],
  ]
  test.each(cases.map(([value, text]) => ({ value, text })))('$text', ({ value, text }) =>
    expect(dumps(value)).toBe(text),
  )
  test('what is not JSON is refused', () => {
    expect(() => dumps({ f: undefined } as unknown as JsonValue)).toThrow('type undefined')
  })
})

describe('the state', () => {
  test('text stays as it is', () => expect(renderState(' "a"\n')).toBe(' "a"\n'))
  test('lists of fewer than 8 stay as they are', () =>
    expect(renderState([1, 2, { a: [3] }])).toBe('[1, 2, {"a": [3]}]'))
  test('elements of longer lists show their index, an own one wins', () => {
    const state = { rows: [...Array(7).keys(), { a: 7 }, { b: 1, _index: 'own' }] }
    const plain = Array.from({ length: 7 }, (_, i) => `{"_index": ${i}, "value": ${i}}`).join(', ')
    expect(renderState(state)).toBe(`{"rows": [${plain}, {"_index": 7, "a": 7}, {"_index": "own", "b": 1}]}`)
  })
  test('lists inside lists are annotated too', () => {
    const inner = Array.from({ length: 8 }, () => 0)
    expect(renderState([inner])).toContain('[[{"_index": 0, "value": 0}, ')
    expect(renderState(Array.from({ length: 9 }, () => [1]))).toContain('{"_index": 4, "value": [1]}')
  })
})

test('strip takes what Python calls space', () => {
  expect(strip('\x1c\x85\u3000 a b\n')).toBe('a b')
  expect(strip('\ufeffa')).toBe('\ufeffa')
})

test.each([
  ['1', 1],
  [' -2.5 ', -2.5],
  ['1e3', 1000],
  ['.5', 0.5],
  ['', undefined],
  ['0x10', undefined],
  ['nan', undefined],
  ['1e999', undefined],
])('float(%j) is %j', (text, value) => expect(readFloat(text as string)).toBe(value))

test('numbers are spelled the shortest way', () => expect(spellNumber(0.30000000000000004)).toBe('0.30000000000000004'))
