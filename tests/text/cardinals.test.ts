import fc from 'fast-check'
import { expect, test } from 'vitest'
import { cardinal, decimal, digitwise, ordinal, plural, year } from '../../src/text/cardinals.ts'

test.each([
  [cardinal, '0', 'zero'],
  [cardinal, '000', 'zero'],
  [cardinal, '1000000', 'one million'],
  [cardinal, '2000017', 'two million seventeen'],
  [ordinal, '0', 'zeroth'],
  [ordinal, '12', 'twelfth'],
  [ordinal, '80', 'eightieth'],
  [ordinal, '105', 'one hundred fifth'],
  [plural, 'sixty-six', 'sixty-sixes'],
  [year, '1000', 'one thousand'],
  [year, '1905', 'nineteen oh five'],
  [year, '2009', 'two thousand nine'],
  [decimal, '1,000.05', 'one thousand point zero five'],
  [decimal, '.5', 'point five'],
  [decimal, '007', 'zero zero seven'],
  [digitwise, '105', 'one zero five'],
] as const)('%o of %s', (say, digits, words) => {
  expect(say(digits)).toBe(words)
})

/** Back from words, by sums and products. */
function numberOf(words: string): bigint {
  const small = new Map(Array.from({ length: 100 }, (_, n) => [cardinal(`${n}`), BigInt(n)]))
  const scales = 'thousand million billion trillion quadrillion quintillion sextillion'.split(' ')
  let [total, group] = [0n, 0n]
  for (const word of words.split(' ')) {
    const scale = scales.indexOf(word)
    if (word === 'hundred') group *= 100n
    else if (scale < 0) group += small.get(word)!
    else [total, group] = [total + group * 1000n ** BigInt(scale + 1), 0n]
  }
  return total + group
}

test('words say the number, and each number has its own', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 10n ** 24n - 1n }), (n) => {
      expect(numberOf(cardinal(`${n}`))).toBe(n)
      expect(cardinal(`00${n}`)).toBe(cardinal(`${n}`))
      expect(cardinal(`${n}`, { commas: true, and: true }).replace(/,| and/g, '')).toBe(cardinal(`${n}`))
    }),
  )
})
