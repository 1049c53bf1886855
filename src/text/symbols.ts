/** Zonos' symbols in the order of its embedding rows; the first has id 4. Code points, not UTF-16 units. */
const punctuation = ';:,.!?¡¿—…"«»“”() *~-/\\&'
const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const ipa =
  'ɑɐɒæɓʙβɔɕçɗɖðʤəɘɚɛɜɝɞɟʄɡɠɢʛɦɧħɥʜɨɪʝɭɬɫɮʟɱɯɰŋɳɲɴøɵɸθœɶʘɹɺɾɻʀʁɽʂʃʈʧʉʊʋⱱʌɣɤʍχʎʏʑʐʒʔʡʕʢǀǁǂǃ' +
  "ˈˌːˑʼʴʰʱʲʷˠˤ˞↓↑→↗↘'\u0329'ᵻ"

const special = { pad: 0, unknown: 1, begin: 2, end: 3 } as const
const first = 4
const symbols = [...punctuation, ...letters, ...ipa]

/** Rows of Zonos' phoneme embedding. */
export const phonemeCount = first + symbols.length
/** What stays in a text as it is, and parts it into what espeak is given: Zonos' punctuation, space included. */
export const marks: readonly string[] = [...punctuation]

/** The apostrophe is there twice: its later row is the one that was trained. */
const ids = new Map(symbols.map((symbol, i) => [symbol, first + i]))

/**
 * Zonos' ids of a string of phonemes, one for each code point, between those of the beginning and the end:
 * [BOS 2, ..., EOS 3], each below 189. A code point without a symbol is UNK 1, never left out: upstream does so, and
 * its voices were trained on that. `unknownSymbols` tells which they are.
 */
export function phonemeIds(phonemes: string): Uint32Array {
  const inner = [...phonemes].map((symbol) => ids.get(symbol) ?? special.unknown)
  return Uint32Array.of(special.begin, ...inner, special.end)
}

/** Is there a sound among the symbols, not only marks and what has no symbol? */
export const hasSound = (phonemes: string): boolean => [...phonemes].some((s) => ids.has(s) && !marks.includes(s))

/** The code points of a string of phonemes that Zonos has no symbol for, each once. */
export const unknownSymbols = (phonemes: string): string[] => [...new Set(phonemes)].filter((s) => !ids.has(s))
