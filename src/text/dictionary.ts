import { InputError } from '../errors.ts'
import { mapWords } from './phonemes.ts'

/** Words, and what is said for them: IPA between slashes or other words. */
export type Pronunciations = Readonly<Record<string, string>>

const escaped = (word: string): string => word.replace(/[.*+?^${}()|[\]\\/]/g, String.raw`\$&`)

/**
 * Replaces words of a text by what a dictionary says, as whole words only: "cat" is not found in "cats". The longest
 * entry wins, which may be of several words, and what was replaced is not looked up again. An entry in lower case is
 * found in any case ("tomato" in "Tomato"); one with a capital is found as it is written alone ("Polish" is not
 * "polish", "US" not "us"), and goes first. Before an ending with an apostrophe, "tomato's", words are replaced and IPA is not. IPA between slashes
 * in the text is left alone.
 *
 * @throws InputError for an entry that is empty
 */
export function applyDictionary(text: string, dictionary: Pronunciations): string {
  const entries = Object.entries(dictionary).map(([word, said]) => [word.trim().normalize('NFC'), said] as const)
  for (const [word, said] of entries) {
    if (word !== '' && typeof said === 'string' && said.trim() !== '') continue
    throw new InputError(
      `dictionary: ${JSON.stringify(word)} has ${JSON.stringify(said)}, expected a word and /IPA/ or words for it`,
    )
  }
  if (entries.length === 0) return text
  const exact = new Map(entries)
  const longest = [...exact.keys()].sort((a, b) => b.length - a.length).map(escaped)
  const pattern = new RegExp(String.raw`(?<![\p{L}\p{M}\p{N}])(?:${longest.join('|')})(?![\p{L}\p{M}\p{N}])`, 'giu')
  return mapWords(text.normalize('NFC'), (words) =>
    words.replace(pattern, (found, at: number) => {
      const said = exact.get(found) ?? exact.get(found.toLowerCase())
      if (said === undefined) return found
      const ipa = said.startsWith('/')
      if (ipa && /^['’]\p{L}/u.test(words.slice(at + found.length))) return found // 's would be read as a letter
      return ipa && words[at - 1] === '/' ? ` ${said}` : said
    }),
  )
}
