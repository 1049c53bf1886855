import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { sentences } from '../../src/text/sentences.ts'

test.each<[string, string[]]>([
  ['Hello there. How are you? Fine!', ['Hello there.', 'How are you?', 'Fine!']],
  ['Dr. Smith met Mrs. Jones. They spoke.', ['Dr. Smith met Mrs. Jones.', 'They spoke.']],
  ['Use tools, e.g. a saw. It cuts.', ['Use tools, e.g. a saw.', 'It cuts.']],
  ['He lives in the U.S. and works.', ['He lives in the U.S. and works.']],
  ['He lives in the U.S. She does not.', ['He lives in the U.S.', 'She does not.']],
  ['See No. 5 and Fig. 2. Then go.', ['See No. 5 and Fig. 2.', 'Then go.']],
  ['He said no. Then he left.', ['He said no.', 'Then he left.']],
  ['It is 3.14. Or 2.5 kg.', ['It is 3.14.', 'Or 2.5 kg.']],
  ['In 1999. 20 came.', ['In 1999.', '20 came.']],
  ['J. R. Tolkien wrote it. Yes.', ['J. R. Tolkien wrote it.', 'Yes.']],
  ['It was I. He knew.', ['It was I.', 'He knew.']],
  ['“Really?” she said. “Yes.” He nodded.', ['“Really?” she said.', '“Yes.”', 'He nodded.']],
  ['"Stop!" "Why?" asked Ann.', ['"Stop!"', '"Why?" asked Ann.']],
  ['Well... maybe. Well… No.', ['Well... maybe.', 'Well…', 'No.']],
  ['At 5 p.m. we met. At 6 p.m. We left.', ['At 5 p.m. we met.', 'At 6 p.m.', 'We left.']],
  ['What?! No.', ['What?!', 'No.']],
  ['Title\n\nFirst line\nsecond line. End', ['Title', 'First line\nsecond line.', 'End']],
  ['Buy:\n- milk\n- eggs\n1. Call\n2. Go', ['Buy:', '- milk', '- eggs', '1. Call', '2. Go']],
  ['你好。再见！好', ['你好。', '再见！', '好']],
  ['Ça va ? Oui. « Bon. » Il part.', ['Ça va ?', 'Oui.', '« Bon. »', 'Il part.']],
  ['Go to example.com. Then wait.', ['Go to example.com.', 'Then wait.']],
  ['(He left.) She stayed.', ['(He left.)', 'She stayed.']],
  ['The U.S. Army came. Then Acme Inc. Smith left.', ['The U.S. Army came.', 'Then Acme Inc. Smith left.']],
  ['Am 3. Mai kam er. Er hat z.B. Autos.', ['Am 3. Mai kam er.', 'Er hat z.B. Autos.']],
  ['He likes art. Then he eats a fig. See Fig. 3.', ['He likes art.', 'Then he eats a fig.', 'See Fig. 3.']],
  ['On Dec. 5 it was over. In Dec. They left.', ['On Dec. 5 it was over.', 'In Dec.', 'They left.']],
  ['Hm . . . ok. Go.', ['Hm . . . ok.', 'Go.']],
  ['Say /ˈiː.dʒˈiː. ɡˈoʊ/ now. Then /a! bˈaɪ/.', ['Say /ˈiː.dʒˈiː. ɡˈoʊ/ now.', 'Then /a! bˈaɪ/.']],
  ['', []],
  [' \n ', []],
  ['...', ['...']],
])('%j', (text, want) => {
  expect(sentences(text)).toEqual(want)
})

describe('over-long sentences', () => {
  test('are split at a comma of the second half, else at a space, else in the word', () => {
    expect(sentences('one two, three four five', { most: 12 })).toEqual(['one two,', 'three four', 'five'])
    expect(sentences('a, three four five', { most: 12 })).toEqual(['a, three', 'four five'])
    expect(sentences('abcdefgh', { most: 3 })).toEqual(['abc', 'def', 'gh'])
    expect(sentences('one /a, b c/ two', { most: 13 })).toEqual(['one /a, b c/', 'two'])
    expect(sentences('😀😀😀', { most: 3 })).toEqual(['😀', '😀', '😀'])
  })
})

const solid = (text: string): string => text.replace(/\s/g, '')
const texts = fc.string({
  unit: fc.constantFrom(...'aBI é.!?…,;:"”)(\n-•19。😀', 'Dr. ', 'e.g. ', 'U.S. '),
  maxLength: 80,
})

test('every character but space is kept in order, and no sentence is longer than it may be', () => {
  fc.assert(
    fc.property(texts, fc.integer({ min: 2, max: 40 }), (text, most) => {
      const found = sentences(text, { most })
      expect(solid(found.join(' '))).toBe(solid(text))
      for (const sentence of found) {
        expect(sentence.length).toBeLessThanOrEqual(most)
        expect(sentence).toBe(sentence.trim())
        expect(sentence).not.toBe('')
      }
    }),
    { numRuns: 1000 },
  )
})
