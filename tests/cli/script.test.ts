import { expect, test } from 'vitest'
import { turnsOf } from '../../src/cli/script.ts'

const both = ['anna', 'ben']

test.each<[string, string[], [string | undefined, string][]]>([
  ['Hello.\nYou.', [], [[undefined, 'Hello.\nYou.']]],
  ['Note: this is text.', [], [[undefined, 'Note: this is text.']]],
  ['Hello.', both, [['anna', 'Hello.']]],
  [
    'anna: Hello.\nBEN : And you?',
    both,
    [
      ['anna', 'Hello.'],
      ['ben', 'And you?'],
    ],
  ],
  [
    'It rains.\n\nben: Yes.\nIt does.\n\nanna:\nOh: no.\n',
    both,
    [
      ['anna', 'It rains.'],
      ['ben', 'Yes.\nIt does.'],
      ['anna', 'Oh: no.'],
    ],
  ],
  [
    'ben: At 5:30.\r\nanna: Good.',
    both,
    [
      ['ben', 'At 5:30.'],
      ['anna', 'Good.'],
    ],
  ],
  ['', both, [['anna', '']]],
  ['anna:\nben: Yes.', both, [['ben', 'Yes.']]],
  ['anna: ...\nben: Yes.\nanna: ?!', both, [['ben', 'Yes.']]],
])('%j with %j', (script, names, want) => {
  expect(turnsOf(script, names).map(({ name, text }) => [name, text])).toEqual(want)
})
