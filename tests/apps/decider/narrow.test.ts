import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isAbstaining, narrow } from '../../../src/apps/decider/narrow.ts'

test.each([
  ' None of the above ',
  'none of the above, or several',
  'NONE OF THESE',
  'Not listed here',
  'no suitable team',
  'does not apply',
  'Cannot tell from this',
  'Other',
  'unsure',
  'something else',
  'neither of these',
  'other / not covered',
])('%j abstains', (option) => expect(isAbstaining(option)).toBe(true))

test.each(['other services', 'none', 'n/a', 'unsure about it', 'anything not listed', ''])('%j does not', (option) =>
  expect(isAbstaining(option)).toBe(false),
)

describe('narrowed options', () => {
  const question = fc
    .uniqueArray(fc.string({ minLength: 1, maxLength: 4 }), { minLength: 2, maxLength: 60 })
    .map((options) => [...options, 'Other', 'not listed here'])
    .chain((options) => fc.record({ options: fc.constant(options), gold: fc.nat(options.length - 1) }))
  const random = fc.infiniteStream(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }))

  test('hold the right one and those that abstain, each once, and no more than asked for', () => {
    fc.assert(
      fc.property(question, random, ({ options, gold }, stream) => {
        const narrowed = narrow({ options, gold }, 10, () => stream.next().value)
        expect(narrowed.options[narrowed.gold]).toBe(options[gold])
        expect(narrowed.options).toEqual(expect.arrayContaining(options.filter(isAbstaining)))
        expect(new Set(narrowed.options).size).toBe(narrowed.options.length)
        expect(narrowed.options).toHaveLength(Math.min(10, options.length))
        expect(options).toEqual(expect.arrayContaining([...narrowed.options]))
      }),
    )
  })
  test('abstaining ones stay, however many', () => {
    const options = Array.from({ length: 12 }, (_, i) => `not listed ${i}`)
    expect(narrow({ options: ['right', ...options, 'wrong'], gold: 0 }, 10, Math.random).options).toHaveLength(13)
  })
  test('every order comes', () => {
    const orders = new Set<string>()
    for (let i = 0; i < 600; i++)
      orders.add(narrow({ options: ['a', 'b', 'c'], gold: 1 }, 10, Math.random).options.join())
    expect(orders.size).toBe(6)
  })
})
