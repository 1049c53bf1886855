import { belowHundred, cardinal, digitwise, ordinal, plural, year } from './cardinals.ts'

const months = `January February March April May June July August September October November December`.split(' ')
const month = String.raw`(${months.join('|')}|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b\.?)`
const monthNamed = (name: string): string => months.find((m) => m.startsWith(name.slice(0, 3)))!
const day = String.raw`(0?[1-9]|[12]\d|3[01])`
const ending = '(?:st|nd|rd|th)?'
const dash = String.raw`\s?[-–—]\s?`
/** Not the beginning of a longer number, a time or a share. */
const alone = String.raw`(?![\w/]|[.,:]\d|\s?%)`

/** Words of a date, of what is there. */
function dateWords(y: string | undefined, m: number, d: string): string {
  return `${months[m - 1]} ${ordinal(d)}${y === undefined ? '' : `, ${yearWords(y)}`}`
}

const yearWords = (y: string): string =>
  y.length === 4 && y[0] !== '0' ? year(y) : y.length === 2 && y[0] === '0' ? `oh ${cardinal(y)}` : cardinal(y)

/** Dates whose order is sure, decades, and years with their era. */
export function readDates(text: string): string {
  return readYears(readNamedDates(readNumericDates(text)))
}

function readNumericDates(text: string): string {
  const isDate = (m: string, d: string): boolean => +m >= 1 && +m <= 12 && +d >= 1 && +d <= 31
  return text
    .replace(/(?<![\w/-])(\d{4})([-/])(\d\d)\2(\d\d)(?:(?![\w/-])|T(?=\d\d:\d\d))/g, (all, y, _, m, d) =>
      isDate(m, d) ? `${dateWords(y, +m, d)}${all.endsWith('T') ? ', ' : ''}` : all,
    )
    .replace(/(?<![\w/])(\d\d?)\/(\d\d?)\/(\d{4}|\d\d)(?![\w/])/g, (_, a, b, y) => {
      if (isDate(a, b) && (+b > 12 || a === b)) return dateWords(y, +a, b)
      if (isDate(b, a) && +a > 12) return dateWords(y, +b, a)
      return `${cardinal(a)} slash ${cardinal(b)} slash ${yearWords(y)}`
    })
    .replace(/(?<![\w.])(\d\d?)\.(\d\d?)\.(\d{4})(?![\w]|\.\d)/g, (all, d, m, y) =>
      isDate(m, d) ? dateWords(y, +m, d) : all,
    )
}

function readNamedDates(text: string): string {
  const optionalYear = String.raw`(?:,?\s(\d{4})\b)?`
  const of = (y: string | undefined): string => (y === undefined ? '' : `, ${yearWords(y)}`)
  return text
    .replace(
      new RegExp(String.raw`\b${month}\s${day}${ending}(?:${dash}${day}${ending})?${optionalYear}${alone}`, 'g'),
      (_, m, from, to, y) => `${monthNamed(m)} ${ordinal(from)}${to ? ` to ${ordinal(to)}` : ''}${of(y)}`,
    )
    .replace(
      new RegExp(
        String.raw`(?<![\w.,:/$€£-])(?:the )?${day}${ending}(?:${dash}${day}${ending})?(?: of)? ${month}${optionalYear}(?!\w)`,
        'g',
      ),
      (_, from, to, m, y) => `the ${ordinal(from)}${to ? ` to ${ordinal(to)}` : ''} of ${monthNamed(m)}${of(y)}`,
    )
    .replace(
      new RegExp(String.raw`\b${month},?\s([12]\d{3})${alone}`, 'g'),
      (_, m, y) => `${monthNamed(m)} ${yearWords(y)}`,
    )
}

function readYears(text: string): string {
  const era = (name: string): string => [...name.replaceAll('.', '')].join(' ')
  const count = (n: string): string => (n.length === 4 ? year(n) : cardinal(n))
  return text
    .replace(/(?<![\w/.,])((?:1[5-9]|20)\d\d)\/(\d\d)(?![\w/])/g, (all, from: string, to: string) =>
      (Number(from) + 1) % 100 === Number(to) ? `${year(from)} ${yearWords(to)}` : all,
    )
    .replace(/(?<=\d['’]?s)\s?[-–—]\s?(?=['’]?\d+['’]?s\b)/g, ' to ')
    .replace(/(?<![\w.,])['’]?(\d{1,4})['’]?s(?!\w)/g, (_, n: string) =>
      plural(/^[12]\d\d0$/.test(n) ? year(n) : cardinal(n)),
    )
    .replace(/(?<![\w'’])['’](\d\d)(?![\w'’"”″]|[.,:]\d)/g, (_, n: string) => yearWords(n))
    .replace(/(?<![\w.,])(\d{1,4})\s?(AD|BCE|BC|CE|A\.D\.|B\.C\.)(?!\w)/g, (_, n, name) => `${count(n)} ${era(name)}`)
    .replace(/\b(AD|A\.D\.)\s(\d{1,4})(?!\w|[.,:]\d)/g, (_, name, n) => `${era(name)} ${count(n)}`)
    .replace(
      /\b(in|since|until|year|circa)\s(10\d\d)(?!\w|[.,:/]\d|\s?[%°])/gi,
      (_, before, n) => `${before} ${year(n)}`,
    )
}

const half = String.raw`\s?(?:([AaPp])[Mm]\b|([AaPp])\.\s?[Mm]\.)`

/** 5:30 pm, 17:45, 9-5 pm; then ratios, 16:9. */
export function readTimes(text: string): string {
  const clock = String.raw`\d\d?(?::[0-5]\d)?`
  return text
    .replace(new RegExp(String.raw`(?<![\w.,:])(${clock}(?:${half})?)${dash}(?=${clock}${half})`, 'g'), '$1 to ')
    .replace(new RegExp(String.raw`(?<![\w.,:])(\d\d?:[0-5]\d)${dash}(?=\d\d?:[0-5]\d(?!\d))`, 'g'), '$1 to ')
    .replace(new RegExp(String.raw`(?<![\w.,:])(\d\d?)\.([0-5]\d)(?=${half})`, 'g'), '$1:$2')
    .replace(
      new RegExp(String.raw`(?<![\w.,:])([01]?\d|2[0-4])(?::([0-5]\d))?(?::([0-5]\d))?${half}`, 'g'),
      (all, h, m, s, short, dotted, at: number, whole: string) => {
        const noon = (short ?? dotted).toUpperCase() === 'A' ? 'A M' : 'PM' // AM alone is read as a word
        const stop = dotted && /^(?:["'”’)]*\s+[A-Z]|["'”’)]*\s*$)/.test(whole.slice(at + all.length)) ? '.' : ''
        return `${timeWords(+h, m ?? '', s)} ${noon}${stop}`
      },
    )
    .replace(/(?<![\w.,:])([01]?\d|2[0-4]):([0-5]\d)(?::(?:00|([0-5]\d)))?Z?(?![\w:])/g, (_, h, m, s) => {
      const words = timeWords(+h, m, s)
      if (m !== '00' || s) return words
      if (+h === 0 || +h === 24) return 'midnight'
      return +h > 12 ? `${words} hundred` : `${words} o'clock`
    })
    .replace(/(?<![\w.,])(\d+):(\d+)(?![\w:]|\.\d)/g, (_, a, b) => `${cardinal(a)} to ${cardinal(b)}`)
    .replace(/(?<=\d):(?=\d)/g, ', ')
}

function timeWords(h: number, minutes: string, seconds: string | undefined): string {
  const m = Number(minutes)
  const head = belowHundred(h)
  const rest = m === 0 ? (seconds ? ' hundred' : '') : m < 10 ? ` oh ${digitwise(`${m}`)}` : ` ${belowHundred(m)}`
  if (!seconds) return head + rest
  return `${head}${rest} and ${cardinal(seconds)} ${+seconds === 1 ? 'second' : 'seconds'}`
}
