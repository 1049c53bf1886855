import { cardinal, ordinal } from './cardinals.ts'

/** With a point and no end of a sentence behind it. Those with a reading are read so. */
const written: Readonly<Record<string, string>> = {
  ...{ 'Dr.': 'Doctor', 'Mr.': 'Mister', 'Mrs.': 'Missus', 'Ms.': 'Miz', 'Prof.': 'Professor', 'Gen.': 'General' },
  ...{ 'Sen.': 'Senator', 'Gov.': 'Governor', 'Capt.': 'Captain', 'Lt.': 'Lieutenant', 'Sgt.': 'Sergeant' },
  ...{ 'Rev.': 'Reverend', 'Hon.': 'Honorable', 'Jr.': 'Junior', 'Sr.': 'Senior', 'vs.': 'versus' },
  ...{ 'e.g.': 'for example', 'i.e.': 'that is', 'etc.': 'et cetera', 'approx.': 'approximately' },
}

/** Before a number only. */
const numbered: Readonly<Record<string, string>> = {
  ...{ 'p.': 'page', 'pp.': 'pages', 'Vol.': 'Volume', 'vol.': 'volume', 'Ch.': 'Chapter', 'ch.': 'chapter' },
  ...{ 'Fig.': 'Figure', 'fig.': 'figure', 'Sec.': 'Section', 'sec.': 'section', 'Eq.': 'Equation' },
}

/** Said as letters, which espeak-ng takes for words; it knows FBI and USA as letters and NASA and NATO as words. */
const letters = new Set('IQ IMF QA SEO IOU AMA UX IO ETA EQ'.split(' '))

const escaped = (words: Iterable<string>): string => [...words].map((w) => w.replaceAll('.', String.raw`\.`)).join('|')
const abbreviation = new RegExp(String.raw`(?<![\p{L}\d.])(${escaped(Object.keys(written))})(?!\p{L})`, 'gu')
const beforeNumber = new RegExp(String.raw`(?<![\p{L}\d.])(${escaped(Object.keys(numbered))})\s?(?=\d)`, 'gu')
const atEnd = /^["'”’)]*(?:\s*$|\s*\n)/

/** Titles, Latin, U.S. and acronyms; a point that ends the text as well stays. */
export function readAbbreviations(text: string): string {
  const keepEnd = (words: string, after: string): string => (atEnd.test(after) ? `${words}.` : words)
  return text
    .replace(abbreviation, (all, name: string, at: number, whole: string) =>
      keepEnd(written[name]!, whole.slice(at + all.length)),
    )
    .replace(beforeNumber, (_, name: string) => `${numbered[name]} `)
    .replace(/(?<![\p{L}\d.])(?!(?:A\.D|B\.C)\.)(?:\p{Lu}\.){2,}(?!\p{L})/gu, (name, at: number, whole: string) =>
      keepEnd(name.replaceAll('.', ''), whole.slice(at + name.length)),
    )
    .replace(/(?<![\p{L}\d])\p{Lu}{2,3}(?![\p{L}\d])/gu, (name) => (letters.has(name) ? [...name].join(' ') : name))
}

/** Names of kings, queens and popes. */
const reigned = `Henry|Louis|Elizabeth|Charles|George|William|Edward|James|Richard|John|Paul|Napoleon|Catherine|Peter
  |Philip|Frederick|Benedict|Pius|Leo|Gregory|Innocent|Alexander|Nicholas|Ramesses|Ptolemy|Mary|Wilhelm|Friedrich|Otto
  |Ivan|Felipe|Carlos|Gustav|Christian|Harald|Margrethe|Boniface|Urban|Clement|Sixtus|Xerxes|Darius`.replace(/\s+/g, '')
const counted = `Chapter|Part|Book|Act|Scene|Volume|Vol\\.|Section|War|Phase|Type|Class|Level|Stage|Article|Appendix
  |Title|Bowl|Rocky|Figure|Table|Grade|Tier|Category|Division|Apollo|Series`.replace(/\s+/g, '')
const roman = '(?=[IVXLC])(?:C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})'

/** Roman numerals behind what counts with them: a reign, a chapter, a war, a century. I and a lone letter need more. */
export function readRomans(text: string): string {
  const sure = String.raw`(?![\p{L}\d'’])`
  const closed = String.raw`(?=\s*(?:[.,;:!?)\]"”]|$)|\s+(?:of|and|was|is|had|in|on|to)\s)`
  return text
    .replace(new RegExp(String.raw`\b(${reigned})\s(${roman})${sure}(${closed})?`, 'gu'), (all, name, n, end) =>
      n === '' || (n.length === 1 && end === undefined) ? all : `${name} the ${ordinal(romanValue(n))}`,
    )
    .replace(new RegExp(String.raw`\b(${counted})\s(${roman})${sure}(${closed})?`, 'giu'), (all, name, n, end) =>
      n === '' || n !== n.toUpperCase() || (n === 'I' && end === undefined && /^[a-z]/.test(name))
        ? all
        : `${name} ${cardinal(romanValue(n))}`,
    )
    .replace(new RegExp(String.raw`\b(${roman})(?:st|nd|rd|th)?(?=\s(?:century|centuries)\b)`, 'gu'), (all, n) =>
      n === '' ? all : ordinal(romanValue(n)),
    )
}

const values: Readonly<Record<string, number>> = { I: 1, V: 5, X: 10, L: 50, C: 100 }

/** 'XIV' to '14'. */
function romanValue(numeral: string): string {
  const digits = [...numeral].map((c) => values[c]!)
  return String(digits.reduce((sum, n, i) => sum + (n < (digits[i + 1] ?? 0) ? -n : n), 0))
}
