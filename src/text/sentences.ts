import { hideIpa } from './phonemes.ts'

export interface SentenceOptions {
  /** Characters of a sentence; a longer one is split at a comma, a space, or in a word. Default 300. */
  readonly most?: number | undefined
}

/** Abbreviations that a name or a number follows: no sentence ends here. */
const titles = `dr mr mrs ms prof st gen sen gov capt cpt lt sgt maj rev messrs mme mlle
  mt eds dept approx ca cf vs viz bzw hr frl bd ggf evtl vgl zzgl inkl ste`
/** Before a number only: "No. 5" and "No. Then". */
const counts = `no nos nr vol vols ch fig figs sec eq p pp art abs ft jan feb mar apr jun jul aug sep sept oct nov dec`
/** Abbreviations that may end one: before a capital. */
const others = 'etc a.m p.m b.c a.d'
/** Abbreviations that names follow, "U.S. Army", may too, as those of letters may: before one of these words. */
const inNames = 'inc ltd co corp al bros ave blvd rd jr sr rep col hon pres ed est fr usw'
const starters = `the a an he she it they we i you this that these those there here in on at by for from to but and or so
  if when while after before as since then his her its their our my your no yes not what who why how where now all some
  many most however although`
const germanMonths = 'januar februar märz april mai juni juli august september oktober november dezember'
const words = (list: string): Set<string> => new Set(list.split(/\s+/))
const [beforeNames, beforeNumbers] = [words(titles), words(counts)]
const [maybeLast, namesToo, first, months] = [words(others), words(inNames), words(starters), words(germanMonths)]

const closing = String.raw`(?:["'”“’»«›‹)\]}」』）】]|[ \u00a0\u202f]»)*`
/** What may end a sentence: points with closing quotes before a space, full-width ones anywhere, an empty line. */
const candidate = new RegExp(
  String.raw`[.!?…‽؟۔।॥]+${closing}(?=\s|$)|[。！？｡]+${closing}|(?=\s*\n\s*\n)|(?=[^\S\n]*\n[^\S\n]*(?:[-*•–]|\d{1,3}[.)])\s)`,
  'gu',
)

/**
 * The sentences of a text, without the space around them. Every other character is kept, in order. An ellipsis and an
 * abbreviation end a sentence only before a capital letter; "Dr.", "No. 5", initials and decimals end none; items of a
 * list and paragraphs stand alone, and IPA between slashes is a word.
 */
export function sentences(text: string, { most = 300 }: SentenceOptions = {}): string[] {
  const limit = Math.max(1, Math.floor(most))
  const found: string[] = []
  let start = 0
  const all = hideIpa(text).trimEnd()
  for (const match of all.matchAll(candidate)) {
    const end = match.index + match[0].length
    if (end <= start || !endsHere(all, start, match.index, match[0], end)) continue
    found.push(text.slice(start, end))
    start = end
  }
  found.push(text.slice(start))
  return found
    .map((sentence) => sentence.trim())
    .filter((sentence) => sentence !== '')
    .flatMap((sentence) => shortened(sentence, limit))
}

/** Whether the marks at `at` end the sentence that begins at `start`. */
function endsHere(text: string, start: number, at: number, marks: string, end: number): boolean {
  if (marks === '') return true // a paragraph or an item of a list
  const rest = text.slice(end, end + 64)
  if (end === text.length) return true
  const next = /[\p{L}\p{N}]*/u.exec(rest.replace(/^\s*["'“‘«‹([{¿¡-]*\s*/u, ''))![0]
  const lower = /^\p{Ll}/u.test(next)
  if (marks === '.' && /^ \./.test(rest)) return false // an ellipsis with spaces
  if (/["'”’»)]/.test(marks) && lower) return false // "Really?" she said
  if (/^(?:…|\.{2,})/.test(marks)) return !lower
  if (marks[0] !== '.' || marks.length > 1) return !/^[!?]+$/.test(marks) || !lower || /\n/.test(/^\s*/.exec(rest)![0])
  const word = /[\p{L}\p{N}.]*$/u.exec(text.slice(Math.max(start, at - 24), at))![0]
  if (/^\p{Lu}$/u.test(word)) return word === 'I' && !lower // an initial: J. Smith
  if (word === '') return !lower
  if (/^\d\d?$/.test(word) && months.has(next.toLowerCase())) return false // 3. Mai
  if (/^\d{1,3}$/.test(word) && text.slice(start, at).trim() === word) return false // the number of a list's item
  const known = word.toLowerCase()
  if (beforeNames.has(known)) return false
  if (beforeNumbers.has(known)) return !/^\d/.test(next) && !lower
  if (maybeLast.has(known)) return /^\p{Lu}/u.test(next)
  if (namesToo.has(known) || /^(?:\p{L}{1,2}\.)+\p{L}$/u.test(word)) return !lower && first.has(next.toLowerCase())
  return !lower
}

/** Pieces of at most so many characters: cut behind the last mark of the second half, else at a space, else anywhere. */
function shortened(sentence: string, most: number): string[] {
  const pieces: string[] = []
  let rest = sentence
  while (rest.length > most) {
    const cut = cutOf(hideIpa(rest), most)
    pieces.push(rest.slice(0, cut).trimEnd())
    rest = rest.slice(cut).trimStart()
  }
  return rest === '' ? pieces : [...pieces, rest]
}

function cutOf(text: string, most: number): number {
  const window = text.slice(0, most + 1)
  const last = (pattern: RegExp): number => Math.max(0, ...[...window.matchAll(pattern)].map((m) => m.index + 1))
  for (const pattern of [/[;:](?=\s)/g, /[,–—)](?=\s)|[，、；]/g]) {
    const cut = last(pattern)
    if (cut > most / 2 && cut <= most) return cut
  }
  const space = last(/(?<=\S)(?=\s)/g) - 1
  if (space > 0) return space
  const between = typeof Intl.Segmenter === 'function' ? wordsEnd(window, most) : 0 // where no spaces part words
  if (between > 0) return between
  const inPair = /[\uD800-\uDBFF]/.test(text[most - 1]!) && most > 1
  return inPair ? most - 1 : most
}

function wordsEnd(window: string, most: number): number {
  const parts = [...new Intl.Segmenter(undefined, { granularity: 'word' }).segment(window)]
  return Math.max(0, ...parts.map(({ index }) => index).filter((index) => index <= most))
}
