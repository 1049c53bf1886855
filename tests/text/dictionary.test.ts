import fc from 'fast-check'
import { expect, test } from 'vitest'
import { InputError } from '../../src/errors.ts'
import { applyDictionary } from '../../src/text/dictionary.ts'
import { piecesOf } from '../../src/text/phonemes.ts'

const dictionary = {
  ...{ tomato: '/təmˈɑːtoʊ/', Polish: '/pˈoʊlɪʃ/', SQL: 'sequel', 'New York': 'the city', york: 'jork', 'c++': 'see' },
  ...{ élan: '/eɪlˈɑːn/' },
}

test.each([
  ['A tomato, a Tomato; TOMATO!', 'A /təmˈɑːtoʊ/, a /təmˈɑːtoʊ/; /təmˈɑːtoʊ/!'],
  ['tomatoes and automato', 'tomatoes and automato'],
  ['Polish polish', '/pˈoʊlɪʃ/ polish'],
  ['SQL, sql', 'sequel, sql'],
  ['New York, york', 'the city, jork'],
  ['c++ and c+', 'see and c+'],
  ['/tomato/ tomato', '/tomato/ /təmˈɑːtoʊ/'],
  ['e\u0301lan', '/eɪlˈɑːn/'],
  ["a tomato's SQL's", "a tomato's sequel's"],
  ['either/tomato', 'either/ /təmˈɑːtoʊ/'],
  ['nothing', 'nothing'],
])('%s', (text, want) => {
  expect(applyDictionary(text, dictionary)).toBe(want)
})

test('its IPA is said as it stands', () => {
  const pieces = piecesOf(applyDictionary('The tomato.', dictionary))
  expect(pieces.filter(({ kind }) => kind === 'ipa')).toEqual([{ kind: 'ipa', text: 'təmˈɑːtoʊ' }])
})

test('what was replaced is not looked up again', () => {
  expect(applyDictionary('a b', { a: 'b', b: 'a' })).toBe('b a')
})

test.each([[{ '': 'x' }], [{ x: ' ' }], [{ x: 3 as never }]])('refuses %j', (wrong) => {
  expect(() => applyDictionary('x', wrong)).toThrow(InputError)
})

test('an empty dictionary changes nothing, and any word can be an entry', () => {
  fc.assert(
    fc.property(
      fc.string(),
      fc.string({ unit: fc.constantFrom(...'ab.*+?^{$}()|[]\\/-'), minLength: 1 }),
      (text, word) => {
        expect(applyDictionary(text, {})).toBe(text)
        applyDictionary(text, { [word]: 'said' })
      },
    ),
  )
})
