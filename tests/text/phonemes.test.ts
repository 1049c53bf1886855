import { describe, expect, test, vi } from 'vitest'
import { InputError } from '../../src/errors.ts'
import { openEspeak } from '../../src/text/espeak.ts'
import { languageId, languages } from '../../src/text/languages.ts'
import { literalPhonemes, openPhonemizer, piecesOf } from '../../src/text/phonemes.ts'
import { phonemeCount, phonemeIds, unknownSymbols } from '../../src/text/symbols.ts'
import vectors from './phoneme_vectors.json' with { type: 'json' }

const phonemizer = await openPhonemizer()

/** What the espeak-ng of the package says otherwise than espeak-ng 1.51, whose voice the vectors have. */
const different: Record<string, string> = {
  // Debian's 1.51 has no Mandarin dictionary and spells English letters; the package reads pinyin
  '你好，世界。': 'ni2χˈɑu2 s.ˈi.5 tɕˈiɛ5',
}

/** By Debian's espeak-ng 1.51: words that its later versions say otherwise. */
const words151 = {
  ...{ four: 'fˈoːɹ', for: 'fɔːɹ', '45': 'fˈoːɹɾi fˈaɪv', before: 'bᵻfˈoːɹ', report: 'ɹᵻpˈoːɹt', form: 'fˈɔːɹm' },
  ...{ forms: 'fˈɔːɹmz', portability: 'pˌoːɹɾəbˈɪlᵻɾi', one: 'wˈʌn', ONES: 'wˈʌnz', "{one's}": 'wˈʌnz' },
  ...{ '#one': 'hˈæʃ wˌʌn', oneself: 'wʌnsˈɛlf' },
}

describe('phonemizer 3.3 with espeak-ng 1.51', () => {
  test.each(vectors)('$lang: $text', ({ lang, normalized, phonemes, ids }) => {
    const want = different[normalized]
    expect(phonemizer.phonemes(normalized, lang)).toBe(want ?? phonemes)
    expect([...phonemeIds(phonemes)]).toEqual(ids)
  })
  test('29 of the 30 vectors are the same, to the id', () => {
    const same = vectors.filter((v) => `${phonemeIds(phonemizer.phonemes(v.normalized, v.lang))}` === `${v.ids}`)
    expect(vectors).toHaveLength(30)
    expect(same).toHaveLength(29)
  })
})

test.each(Object.entries(words151))('espeak-ng 1.51 says %s as %s', (word, ipa) => {
  expect(phonemizer.phonemes(word, 'en-us')).toBe(ipa)
})

describe('symbols', () => {
  test('are 189, and some of them', () => {
    expect(phonemeCount).toBe(189)
    const known = { ˈ: 167, ˌ: 168, ː: 169, ə: 94, ɪ: 113, ŋ: 123, ɹ: 134, ʃ: 142, θ: 130, ð: 92, ɡ: 103, ɚ: 96 }
    const marks = {
      ',': 6,
      '.': 7,
      '!': 8,
      '?': 9,
      '"': 14,
      '“': 17,
      '”': 18,
      '(': 19,
      ')': 20,
      ' ': 21,
      '-': 24,
      '&': 27,
    }
    const rest = { ɐ: 81, ᵻ: 188, "'": 187, '\u0329': 186, A: 28, z: 79, ɑ: 80 }
    for (const [symbol, id] of Object.entries({ ...known, ...marks, ...rest }))
      expect([...phonemeIds(symbol)], symbol).toEqual([2, id, 3])
  })
  test('that are not known are 1, one for each code point, and are named', () => {
    expect([...phonemeIds('a😀\u031e2|')]).toEqual([2, 54, 1, 1, 1, 1, 3])
    expect(unknownSymbols('a😀\u031e2|2')).toEqual(['😀', '\u031e', '2', '|'])
    expect(unknownSymbols('həlˈoʊ, wˈɜːld!')).toEqual([])
    expect([...phonemeIds('')]).toEqual([2, 3])
  })
})

describe('languages', () => {
  test('have the ids of upstream, and a voice each', async () => {
    const some = {
      af: 0,
      cmn: 12,
      de: 16,
      'en-gb': 19,
      'en-us': 24,
      'fr-fr': 35,
      hi: 42,
      it: 51,
      ja: 52,
      ko: 58,
      nl: 76,
    }
    const others = { pl: 81, pt: 82, 'pt-br': 83, ru: 87, tr: 101, vi: 105, yue: 108 }
    for (const [code, id] of Object.entries({ ...some, ...others })) expect(languageId(code), code).toBe(id)
    expect(new Set(languages).size).toBe(109)
    const espeak = await openEspeak()
    for (const code of languages) expect(espeak.word('7', code), code).not.toBe('')
  })
  test('upper case is the same, and another is an error that names near ones', () => {
    expect(languageId('en-US')).toBe(24)
    expect(() => languageId('fr')).toThrow(
      new InputError('language: has "fr", which Zonos does not know; expected fr-be, fr-ch, fr-fr'),
    )
    expect(() => languageId('')).toThrow(InputError)
    expect(() => phonemizer.phonemes('hello', 'tlh')).toThrow(/language: has "tlh", .* expected en-us, /)
    expect(() => phonemizer.phonemes('!', 'tlh')).toThrow(InputError)
  })
})

describe('texts', () => {
  test('words are read alone, whatever was read before them', () => {
    expect(phonemizer.phonemes('the', 'en-us')).toBe('ðə')
    expect(phonemizer.phonemes('Chat, chat', 'fr-fr')).toBe('ʃˈa, ʃˈa')
    expect(phonemizer.phonemes('Chat, the chat', 'en-us')).toBe('tʃˈæt, ðə tʃˈæt')
  })
  test('clauses within a word have a space between', () => {
    expect(phonemizer.phonemes('a\n\n\nb', 'en-us')).toBe('ˈeɪ bˈiː')
    expect(phonemizer.phonemes('नमस्ते।आप', 'hi')).toBe('nəmˈʌsteː ˌaːp')
  })
  test('that are empty are errors, and zero bytes and half characters lose nothing else', () => {
    for (const text of ['', ' ', '\n\t ']) expect(() => phonemizer.phonemes(text, 'en-us')).toThrow(InputError)
    expect(phonemizer.phonemes('hel\0lo', 'en-us')).toBe('həlˈoʊ')
    expect(phonemizer.phonemes('hello\ud800', 'en-us')).toBe('həlˈoʊ')
  })
  test('IPA between slashes stays as it is', () => {
    expect(phonemizer.phonemes('Say /təmˈɑːtoʊ/, please.', 'en-us')).toBe('sˈeɪ təmˈɑːtoʊ, plˈiːz.')
    expect(phonemizer.phonemes('/həlˈoʊ wˈɜːld/', 'en-us')).toBe('həlˈoʊ wˈɜːld')
    expect(literalPhonemes('/həlˈoʊ/, /wˈɜːld/!')).toBe('həlˈoʊ, wˈɜːld!')
    expect(literalPhonemes('...')).toBe('...')
    expect(literalPhonemes('/həlˈoʊ/ world')).toBeUndefined()
  })
  test.each(['1/2/2024', 'either/or/both', 'a / b / c', '/usr/bin', 'http://example.org/', '//', '/ /', '/a/b/'])(
    'other slashes are punctuation: %s',
    (text) => {
      expect(
        piecesOf(text)
          .map((p) => p.text)
          .join(''),
      ).toBe(text)
      expect(piecesOf(text).filter((p) => p.kind === 'ipa')).toEqual([])
    },
  )
})

describe('loading', () => {
  test('takes the bytes or the place of the data', async () => {
    const where = new URL('espeak-ng.data', import.meta.resolve('@echogarden/espeak-ng-emscripten'))
    const { readFile } = await import('node:fs/promises')
    const bytes = Uint8Array.from(await readFile(where)).buffer
    for (const data of [where, where.href, bytes])
      expect((await openPhonemizer({ data })).phonemes('word', 'en-us')).toBe('wˈɜːd')
  })
  test('says what cannot be read', async () => {
    await expect(openPhonemizer({ data: new URL('nothing.data', import.meta.url) })).rejects.toThrow(
      /^phonemes: file:.*nothing\.data cannot be read: .*; pass its URL or bytes as `data`$/,
    )
    await expect(openPhonemizer({ data: 'nowhere' })).rejects.toThrow(
      /^phonemes: the place of espeak-ng.data is not known/,
    )
    await expect(openPhonemizer({ data: new ArrayBuffer(5) })).rejects.toThrow(
      'phonemes: espeak-ng.data has 5 bytes, expected 24014553; take it from @echogarden/espeak-ng-emscripten anew',
    )
    await expect(openPhonemizer({ signal: AbortSignal.abort() })).rejects.toThrow('aborted')
  })
})

test('without the package the error says how to install it', async () => {
  vi.doMock('@echogarden/espeak-ng-emscripten', () => {
    throw new Error('Cannot find package')
  })
  const refused = await openPhonemizer().catch((error: unknown) => error)
  vi.doUnmock('@echogarden/espeak-ng-emscripten')
  expect(refused).toBeInstanceOf(InputError)
  expect(refused).toMatchObject({ code: 'unsupported' })
  expect((refused as Error).message).toContain('npm i @echogarden/espeak-ng-emscripten')
})
