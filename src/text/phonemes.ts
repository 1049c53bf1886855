import { InputError } from '../errors.ts'
import { type EspeakOptions, openEspeak } from './espeak.ts'
import { languageId } from './languages.ts'
import { marks } from './symbols.ts'

/** Text to IPA, as Zonos' voices were trained on it. */
export interface Phonemizer {
  /**
   * IPA of a text in one of `languages`; what is IPA already stands between slashes, "say /təmˈɑːtoʊ/". InputError for
   * an empty text and an unknown language. What espeak-ng reads in another language it marks, "(en)fʊtbɔːl(fr)", and
   * upstream keeps the marks.
   */
  phonemes(text: string, language: string): string
}

/**
 * Loads espeak-ng, from the optional package @echogarden/espeak-ng-emscripten (GPL-3.0).
 *
 * The result is that of phonemizer 3.3 with its `preserve_punctuation`, `with_stress` and all of Zonos' punctuation,
 * the space included, as marks: each word is read alone and the marks between words stay as they are. It equals
 * phonemizer's with espeak-ng 1.51, the version of the reference, word by word in English (6,120 words) and in 77
 * of the 109 languages (some 470 each); the package is newer, and its newer rules show in Mandarin (read by its own
 * dictionary, where Debian's 1.51 spells English letters), Shan, Catalan, Russian and a few words of others.
 */
export async function openPhonemizer(options: EspeakOptions = {}): Promise<Phonemizer> {
  const espeak = await openEspeak(options)
  return {
    phonemes(text, language) {
      languageId(language)
      return expectText(text)
        .map((piece) => (piece.kind === 'word' ? espeak.word(piece.text, language) : piece.text))
        .join('')
    },
  }
}

/** IPA of a text that needs no espeak-ng, all marks and IPA between slashes; undefined where it has a word. */
export function literalPhonemes(text: string): string | undefined {
  const pieces = expectText(text)
  if (pieces.some(({ kind }) => kind === 'word')) return undefined
  return pieces.map((piece) => piece.text).join('')
}

export interface Piece {
  readonly kind: 'word' | 'marks' | 'ipa'
  readonly text: string
}

const mark = `[${marks.map((m) => `\\u{${m.codePointAt(0)!.toString(16)}}`).join('')}]`
/** A run of marks and white space that has at least one mark. */
const separator = new RegExp(`((?:\\s*${mark}+\\s*)+)`, 'u')
/** Slashes around what begins and ends with no space, and that are not inside a word, a date, a path or a URL. */
const between = /(?<![\p{L}\p{N}/])\/([^\s/](?:[^/\n]*[^\s/])?)\/(?![\p{L}\p{N}/])/u

/** The text in pieces that are read or kept, in order; slashes around IPA are left out. */
export function piecesOf(text: string): Piece[] {
  const pieces = text.split(between).flatMap((part, i): Piece[] => {
    if (i % 2 === 1) return [{ kind: 'ipa', text: part }]
    return part.split(separator).map((t, k) => ({ kind: k % 2 === 1 ? 'marks' : 'word', text: t }))
  })
  return pieces.filter((piece) => piece.text !== '')
}

/** The text with its words changed by `change`, and IPA between slashes as it was. */
export function mapWords(text: string, change: (words: string) => string): string {
  const parts = text.split(between).map((part, i) => (i % 2 === 1 ? `/${part}/` : change(part)))
  // a letter beside a slash would end the IPA: what was "50%/ipa/" gets a space
  return parts.reduce((all, part, i) => all + (i > 0 && /[\p{L}\p{N}]$/u.test(all) && part !== '' ? ' ' : '') + part)
}

/** The text with the marks and spaces of IPA between slashes replaced by letters, at the same places. */
export const hideIpa = (text: string): string =>
  text
    .split(between)
    .map((part, i) => (i % 2 === 1 ? `/${part.replace(/[\s\p{P}]/gu, (mark) => 'ə'.repeat(mark.length))}/` : part))
    .join('')

function expectText(text: string): Piece[] {
  if (text.trim() === '') throw new InputError(`phonemes: text is ${JSON.stringify(text)}, expected something to say`)
  return piecesOf(text)
}
