import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { dumps, Float, type JsonValue, renderState, repr } from '../../../src/apps/decider/json.ts'
import { type JsonFault, parseJson } from '../../../src/apps/decider/json_reader.ts'
import { InputError } from '../../../src/errors.ts'

const faultOf = (text: string): JsonFault => {
  try {
    parseJson(text)
  } catch (error) {
    expect(error).toBeInstanceOf(InputError)
    return (error as InputError).cause as JsonFault
  }
  throw new Error(`accepted ${text}`)
}

describe('what Python reads and spells again', () => {
  // dumps(loads(text), ensure_ascii=False) of CPython 3.11
  test.each([
    ['1.0', '1.0'],
    ['1', '1'],
    ['-0', '0'],
    ['-0.0', '-0.0'],
    ['1e5', '100000.0'],
    ['1E400', 'Infinity'],
    ['1e-400', '0.0'],
    ['1e16', '1e+16'],
    ['0.00001', '1e-05'],
    ['123456789012345678901234567890', '123456789012345678901234567890'],
    ['9007199254740993', '9007199254740993'],
    ['-9007199254740993', '-9007199254740993'],
    ['0.1000', '0.1'],
    ['[NaN, Infinity, -Infinity]', '[NaN, Infinity, -Infinity]'],
    ['{"10": 1, "9": 2, "a": 3}', '{"10": 1, "9": 2, "a": 3}'],
    ['{"a": 1, "b": 2, "a": 3}', '{"a": 3, "b": 2}'],
    ['{"__proto__": {"x": 1}}', '{"__proto__": {"x": 1}}'],
    [' \t\r\n[ true , false , null ]\n', '[true, false, null]'],
    ['"\\u00e9\\ud83d\\ude42\\n\\/"', '"é🙂\\n/"'],
    ['[[], {}, ""]', '[[], {}, ""]'],
  ])('%s', (text, spelled) => expect(dumps(parseJson(text))).toBe(spelled))

  test('the state keeps numbers and order too', () => {
    expect(renderState(parseJson('{"10": 1.0, "9": [0.50, 7]}'))).toBe('{"10": 1.0, "9": [0.5, 7]}')
    expect(renderState(parseJson(`[${'1.0,'.repeat(7)} {"a": 2}]`))).toContain(
      '{"_index": 6, "value": 1.0}, {"_index": 7, "a": 2}',
    )
  })
  test('repr', () => {
    const value = parseJson('{"a": [null, true, 1.0, NaN, -Infinity], "it\'s": "x\\"\\n\\u0001"}')
    expect(repr(value)).toBe(`{'a': [None, True, 1.0, nan, -inf], "it's": 'x"\\n\\x01'}`)
    expect(repr('\'"')).toBe(`'\\'"'`)
  })
})

describe('what is no JSON, in the words and at the place of json.loads', () => {
  test.each([
    ['', 'Expecting value', 0],
    ['  ', 'Expecting value', 2],
    ['[1,]', 'Expecting value', 3],
    ['[1 2]', "Expecting ',' delimiter", 3],
    ['[1', "Expecting ',' delimiter", 2],
    ['{"a": 1,}', 'Expecting property name enclosed in double quotes', 8],
    ['{', 'Expecting property name enclosed in double quotes', 1],
    ["{'a': 1}", 'Expecting property name enclosed in double quotes', 1],
    ['{"a" 1}', "Expecting ':' delimiter", 5],
    ['{"a": }', 'Expecting value', 6],
    ['{"a": 1 "b": 2}', "Expecting ',' delimiter", 8],
    ['1 2', 'Extra data', 2],
    ['{} // no', 'Extra data', 3],
    ['[/* no */ 1]', 'Expecting value', 1],
    ['"abc', 'Unterminated string starting at', 0],
    ['["é🙂", "abc', 'Unterminated string starting at', 7],
    ['"abc\\', 'Unterminated string starting at', 0],
    ['"a\nb"', 'Invalid control character at', 2],
    ['"a\u0001b"', 'Invalid control character at', 2],
    ['"\\\\\\x"', 'Invalid \\escape', 3],
    ['"\\u12g4"', 'Invalid \\uXXXX escape', 2],
    ['"\\u', 'Invalid \\uXXXX escape', 2],
    ['nul', 'Expecting value', 0],
    ['[nullx]', "Expecting ',' delimiter", 5],
    ['NaNx', 'Extra data', 3],
    ['[-Infinit]', 'Expecting value', 1],
    ['[1.]', "Expecting ',' delimiter", 2],
    ['[1.5e]', "Expecting ',' delimiter", 4],
    ['[-0.]', "Expecting ',' delimiter", 3],
    ['-', 'Expecting value', 0],
    ['01', 'Extra data', 1],
    ['\ufeff{}', 'Expecting value', 0],
  ])('%j', (text, error, position) => expect(faultOf(text)).toEqual({ error, position, isLimit: false }))

  test('more than Python would read', () => {
    for (const text of ['['.repeat(100_000), '{"a":'.repeat(100_000), `[${'9'.repeat(5000)}]`])
      expect(faultOf(text).isLimit).toBe(true)
    const deep = '['.repeat(1000) + ']'.repeat(1000)
    expect(dumps(parseJson(deep))).toBe(deep)
  })
})

describe('any JSON', () => {
  test('is read as JSON.parse reads it', () => {
    const plain = (value: JsonValue): unknown => {
      if (value instanceof Float) return value.value
      if (typeof value === 'bigint') return Number(value)
      if (Array.isArray(value)) return value.map(plain)
      return value instanceof Map ? Object.fromEntries([...value].map(([key, v]) => [key, plain(v)])) : value
    }
    fc.assert(
      fc.property(fc.json({ maxDepth: 5 }), (text) => {
        // an integer of JSON has no -0 in Python
        expect(plain(parseJson(text))).toEqual(JSON.parse(text, (_, value) => (Object.is(value, -0) ? 0 : value)))
      }),
    )
  })
  test('comes back as it was spelled', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 5 }), (text) => {
        const spelled = dumps(parseJson(text))
        expect(dumps(parseJson(spelled))).toBe(spelled)
      }),
    )
  })
  test('broken at any place is refused by type', () => {
    const broken = fc.tuple(fc.json(), fc.nat(), fc.nat(3), fc.string({ unit: 'binary', maxLength: 3 }))
    fc.assert(
      fc.property(broken, ([text, at, cut, put]) => {
        const place = at % (text.length + 1)
        const changed = text.slice(0, place) + put + text.slice(place + cut)
        try {
          parseJson(changed)
        } catch (error) {
          expect(error).toBeInstanceOf(InputError)
          const { position } = (error as InputError).cause as JsonFault
          expect(position).toBeLessThanOrEqual([...changed].length)
          expect(() => JSON.parse(changed)).toThrow() // nothing is refused that is JSON
        }
      }),
      { numRuns: 2000 },
    )
  })
})
