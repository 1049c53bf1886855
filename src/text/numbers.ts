import { InputError } from '../errors.ts'
import { cardinal, decimal, digitwise, ordinal, plural, year } from './cardinals.ts'
import { readDates, readTimes } from './dates.ts'
import { readMoney, readPercent, readUnits } from './quantities.ts'
import { readAbbreviations, readRomans } from './abbreviations.ts'
import { mapWords } from './phonemes.ts'
import { upstreamNumbers } from './upstream_numbers.ts'

/**
 * How numbers in a text are read. 'spoken': as an English speaker reads them, with times, dates, money and units;
 * 'upstream': by Zonos' own normaliser, which knows whole numbers and little else; 'as written': by espeak-ng, in the
 * language of the text.
 */
export type NumberStyle = (typeof numberStyles)[number]
export const numberStyles = ['spoken', 'upstream', 'as written'] as const

/** What a language is read with where nothing is said: the words of 'spoken' are English. */
export const numberStyleOf = (language: string): NumberStyle => (/^en\b/i.test(language) ? 'spoken' : 'as written')

/** A text with its numbers in words. IPA between slashes stays as it is. InputError for a style that is not there. */
export function readNumbers(text: string, style: NumberStyle): string {
  if (!numberStyles.includes(style))
    throw new InputError(`numbers: ${JSON.stringify(style)} is no style, expected ${numberStyles.join(', ')}`)
  if (style === 'as written') return text
  return mapWords(text, style === 'upstream' ? upstreamNumbers : spokenNumbers)
}

/**
 * English words for numbers and the signs around them; the result has no digits. What is not sure stays close to what is
 * written: 3/4/2024 is no date, since it has two readings. Earlier readings take what later ones would misread.
 */
export function spokenNumbers(text: string): string {
  const readings = [
    ...[readAbbreviations, plainDigits, readCodes, readDates, readSigns, readTimes, readMoney, readPercent, readUnits],
    ...[readPowers, readFractions, readOrdinals, readRanges, readRomans, readRest],
  ]
  return readings.reduce((words, read) => read(words), text)
}

const vulgar = /(\d?)\s?([¼½¾⅐-⅞↉])/gu
const digit = /\p{Nd}/u

/** ASCII digits for those of other scripts, 1/2 for ½; the small digits above a line are powers and stay. */
function plainDigits(text: string): string {
  return text
    .replace(vulgar, (_, before: string, sign: string) => {
      const fraction = sign.normalize('NFKC').replace('⁄', '/')
      return before === '' ? fraction : `${before} ${fraction}`
    })
    .replace(/(?<![\d.,+(]|\d )[1-9]\d{0,2}(?:[\u00a0\u2009\u202f]\d{3})+(?!\d)/g, (n) => n.replace(/\s/g, ''))
    .replace(/(?<![\d.,+(]|\d )[1-9]\d{0,2}(?: \d{3})* 000(?! ?\d)/g, (n) => n.replaceAll(' ', ''))
    .replace(/[^\p{ASCII}\P{Nd}]/gu, (c) => {
      const n = c.codePointAt(0)!
      if (n >= 0x1d7ce && n <= 0x1d7ff) return c.normalize('NFKC') // mathematical: five alphabets of ten in a row
      const low = n & 15 // the ten of a script begin at 0 or 6 of a row of 16
      return String(digit.test(String.fromCodePoint(n - low)) ? low : low - 6)
    })
    .replace(/(?<=\d)⁄(?=\d)/g, '/')
    .replace(/[₀-₉①-⑳Ⅰ-ⅿ]/gu, (c) => c.normalize('NFKC'))
}

/** Telephone numbers, addresses of the internet and versions: digit by digit, and part by part. */
function readCodes(text: string): string {
  const groups = (code: string): string => code.match(/\d+/g)!.map(digitwise).join(', ')
  const points = (code: string): string =>
    code
      .split('.')
      .map((part) => decimal(part))
      .join(' point ')
  return text
    .replace(/(?<![\w+])\+(\d[\d ().-]{6,18}\d)(?![\w])/g, (_, code: string) => `plus ${groups(code)}`)
    .replace(/(?<![\w.,-])(?:1[ -.])?(?:\(\d{3}\) ?|\d{3}[-. ])\d{3}[-.]\d{4}(?![\w-])/g, groups)
    .replace(/(?<![\w.,-])(?:\d{3}-\d{4}|\d+(?:-\d+){3,}|\d{3}-\d{2}-\d{4})(?![\w-])/g, groups)
    .replace(/(?<![\w.,-])0\d{2,4}(?:[ -]\d{2,8}){1,4}(?![\w-])/g, groups)
    .replace(/(?<![\w.,-])\d{1,2}(?:[-–]\d{1,2}){2,}(?![\w–-])/g, (n) =>
      n
        .match(/\d+/g)!
        .map((d) => cardinal(d))
        .join(' '),
    )
    .replace(/\b(call|dial|called|dialed|dialled|calling|dialing) (\d{3})\b(?![.,]?\d)/gi, (_, verb, code: string) => {
      return `${verb} ${digitwise(code)}`
    })
    .replace(/(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w]|\.\d)/g, (ip) => ip.split('.').map(digitwise).join(' dot '))
    .replace(/(?<![\w.])(?:version )?v(\d+(?:\.\d+)*)(?![\w]|\.\d)/gi, (_, code: string) => `version ${points(code)}`)
    .replace(/(?<![\w.$€£])(?!\d\d?\.\d\d?\.\d{4})\d+(?:\.\d+){2,}(?![\w]|\.\d)/g, points)
}

const signs: Record<string, string> = {
  ...{ '-': 'minus', '−': 'minus', '–': 'minus', '+': 'plus', '±': 'plus or minus', '~': 'about', '≈': 'about' },
  ...{ '<': 'less than', '>': 'more than', '≤': 'at most', '≥': 'at least', '=': 'equals', '÷': 'divided by' },
  ...{ '×': 'times', '*': 'times', '#': 'number', '№': 'number' },
}

/** Signs before a number and between two; × without a space before it is left, "4×4". */
function readSigns(text: string): string {
  return text
    .replace(/(?<=\d)\s?×\s?(?=10[\^⁻⁰¹²³⁴-⁹])/g, ' times ')
    .replace(/(?<=\d)\+(?![\w.$€£¥+(])/g, ' plus')
    .replace(/([<>])=/g, (sign) => (sign === '<=' ? '≤' : '≥'))
    .replace(/\bNo(s?)\.\s?(?=\d)/g, (_, many: string) => `number${many} `)
    .replace(/(?<=[\d)]\s?)([+×*÷=<>≤≥])\s?(?=[-−]?[\d(]|\.\d)(?<!\d×)/g, (_, sign: string) => ` ${signs[sign]} `)
    .replace(/(?<=\d )[-−](?= \d[\d.]* +(?:[-+*×÷]|equals|plus|times|divided))/g, 'minus')
    .replace(/(?<=^|[\s("“[])([-−–]|[+±~≈<>≤≥#№=]\s?)(?=[$€£¥]?\.?\d)/g, (_, sign: string) => `${signs[sign.trim()]} `)
    .replace(/ {2,}(?=(?:plus|times|equals|divided|less|more|at) )/g, ' ')
}

/** 10⁶, 10^6, x², 1.5e-3. */
function readPowers(text: string): string {
  const power = (n: string): string => {
    if (n === '2') return ' squared'
    if (n === '3') return ' cubed'
    return ` to the ${n.startsWith('-') ? 'minus ' : ''}${cardinal(n.replace(/\D/g, ''))}`
  }
  return text
    .replace(/(?<![\w.])(\d+(?:\.\d+)?)[eE]([-+]?)(\d+)(?!\w)/g, (_, n: string, sign: string, e: string) => {
      return `${decimal(n)} times ten${sign === '-' ? ` to the minus ${cardinal(e)}` : power(e)}`
    })
    .replace(/(?<=[\p{L}\d)])([⁺⁻]?[⁰¹²³⁴-⁹]+)/gu, (n) => power(n.normalize('NFKC').replace('−', '-')))
    .replace(/(?<=[\p{L}\d)])\^([-+]?\d+)/gu, (_, n: string) => power(n))
    .replace(/[⁰¹²³⁴-⁹]/gu, (n) => n.normalize('NFKC'))
}

/** They are no fractions. */
const known: Record<string, string> = { '24/7': 'twenty-four seven', '9/11': 'nine eleven', '50/50': 'fifty-fifty' }

function readFractions(text: string): string {
  return text
    .replace(/(?<![\w/.,])(?:(\d+) )?(\d{1,3})\/(\d{1,3})(?![\w/]|[.,]\d)/g, (all, whole, above, below) => {
      const head = whole === undefined ? '' : `${plain(whole)} `
      const own = known[`${above}/${below}`]
      if (own !== undefined) return `${head}${own}`
      const [n, d] = [Number(above), Number(below)]
      if (whole !== undefined && (n >= d || d > 16)) return all
      return whole === undefined ? fraction(n, d) : `${head}and ${fraction(n, d)}`
    })
    .replace(/(?<=\d\.\d+)\/(?=\d+(?![\w/]|\.\d))/g, ' out of ')
    .replace(/(?<=\d)\/(?=\d)/g, ' slash ')
}

function fraction(n: number, d: number): string {
  const [above, below] = [cardinal(`${n}`), cardinal(`${d}`)]
  if (n === d || d === 100) return `${above} out of ${below}`
  if (n > d || d < 2 || n === 0) return `${above} over ${below}`
  const part = d === 2 ? 'half' : d === 4 ? 'quarter' : ordinal(`${d}`)
  return `${above} ${n === 1 ? part : plural(part)}`
}

const readOrdinals = (text: string): string =>
  text
    .replace(/(?<=\d(?:st|nd|rd|th))\s?[-–—]\s?(?=\d+(?:st|nd|rd|th)(?!\w))/gi, ' to ')
    .replace(/(?<![\w.])(\d{1,3}(?:,\d{3})+|\d+)(?:st|nd|rd|th)(?!\w)/gi, (_, n: string) =>
      ordinal(n.replaceAll(',', '')),
    )

/** 10-20, 2019–2021, 2019-21; with spaces around only where it counts up, "5 - 7". */
function readRanges(text: string): string {
  const number = String.raw`\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+`
  return text
    .replace(/(?<![\w.,-])50-50(?![\w-])/g, 'fifty-fifty')
    .replace(
      new RegExp(String.raw`(?<![\w.,-])(${number})(\s?)[-–—−]\s?(${number})(?![\w-]|[.,]\d)`, 'g'),
      (all, from: string, space: string, to: string) => {
        const up = Number(from.replaceAll(',', '')) < Number(to.replaceAll(',', ''))
        const short = isYear(from) && /^\d\d$/.test(to) && to > from.slice(2)
        return space === '' || up || short ? `${plain(from)} to ${plain(to)}` : all
      },
    )
}

/** All that is left: plain numbers, and those beside letters, "MP3", "4x4". */
function readRest(text: string): string {
  return text
    .replace(/(?<![\p{L}\d])(1[0-9]|20)(\d\d)[x×](\d{3,4})(?!\w)/gu, (_, a, b, c) => `${year(a + b)} by ${screen(c)}`)
    .replace(/(?<=\d)(?<!\b0)\s?[x×]\s?(?=\d)/g, ' by ')
    .replace(/(?<=\d)[x×](?![\p{L}\d])/gu, ' times')
    .replace(/(?<=\d),(?=\d(?!\d\d(?!\d)))/g, ', ')
    .replace(/(?<=\p{L})(?=\d)|(?<=\d)(?=\p{L})/gu, ' ')
    .replace(
      /([A-Za-z]?)(?<![\d.])\.(\d+)/g,
      (_, before: string, n: string) => `${before && `${before} `}point ${digitwise(n)}`,
    )
    .replace(/\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?/g, plain)
}

const screen = (n: string): string => (n.length === 4 ? year(n) : cardinal(n))

const isYear = (n: string): boolean => /^(1[1-9]|20)\d\d$/.test(n)
const LONG = 10 // digits: from here on a number without commas is a code

/** A number alone: four digits of this and earlier centuries as a year, which "1500 people" bears too. */
function plain(n: string): string {
  if (isYear(n)) return year(n)
  if (n.length >= LONG && /^\d+$/.test(n) && !n.endsWith('000')) return digitwise(n)
  return decimal(n)
}
