/** English number words. Numbers are strings of ASCII digits, so that none is too long to be exact. */

const units = `zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
  seventeen eighteen nineteen`.split(/\s+/)
const tens = '- - twenty thirty forty fifty sixty seventy eighty ninety'.split(' ')
const scales = ' thousand million billion trillion quadrillion quintillion sextillion septillion octillion nonillion'
  .concat(' decillion')
  .split(' ')
/** Digits of the longest number that has a name. */
const NAMED_DIGITS = 3 * scales.length

/** 7 to 'seven', 42 to 'forty-two': 0 to 99. */
export const belowHundred = (n: number): string => {
  if (n < 20) return units[n]!
  return n % 10 === 0 ? tens[n / 10]! : `${tens[Math.floor(n / 10)]}-${units[n % 10]}`
}

function belowThousand(n: number, and: string): string {
  if (n < 100) return belowHundred(n)
  const rest = n % 100
  return `${units[Math.floor(n / 100)]} hundred${rest ? `${and} ${belowHundred(rest)}` : ''}`
}

export interface CardinalStyle {
  /** 'one hundred and five' */
  readonly and?: boolean
  /** 'two thousand, one hundred' */
  readonly commas?: boolean
}

/** '1234' to 'one thousand two hundred thirty-four'; what has no name is read digit by digit. */
export function cardinal(digits: string, { and = false, commas = false }: CardinalStyle = {}): string {
  const number = digits.replace(/^0+(?=\d)/, '')
  if (number.length > NAMED_DIGITS) return digitwise(number)
  if (number === '0') return 'zero'
  const join = and ? ' and' : ''
  const groups = number.replace(/\B(?=(\d{3})+$)/g, ' ').split(' ')
  const last = Number(groups.at(-1))
  const named = groups.slice(0, -1).flatMap((group, i) => {
    const scale = scales[groups.length - 1 - i]
    return Number(group) === 0 ? [] : [`${belowThousand(Number(group), join)} ${scale}`]
  })
  const head = named.join(commas ? ', ' : ' ')
  if (last === 0) return head
  if (head === '') return belowThousand(last, join)
  const between = last < 100 ? join : commas ? ',' : ''
  return `${head}${between} ${belowThousand(last, join)}`
}

/** '105' to 'one zero five'. */
export const digitwise = (digits: string): string => [...digits].map((d) => units[Number(d)]).join(' ')

const irregular: Record<string, string> = {
  ...{ one: 'first', two: 'second', three: 'third', five: 'fifth', eight: 'eighth', nine: 'ninth', twelve: 'twelfth' },
}

/** '22' to 'twenty-second'. */
export function ordinal(digits: string, style: CardinalStyle = {}): string {
  return cardinal(digits, style).replace(/[a-z]+$/, (word) => irregular[word] ?? `${word.replace(/y$/, 'ie')}th`)
}

/** 'sixty' to 'sixties', 'hundred' to 'hundreds', 'six' to 'sixes'. */
export const plural = (words: string): string => words.replace(/y$/, 'ie').replace(/x$/, 'xe').concat('s')

/**
 * '1905' to 'nineteen oh five', '1900' to 'nineteen hundred', '2005' to 'two thousand five', '2024' to 'twenty
 * twenty-four': four digits, of which the first is not 0.
 */
export function year(digits: string): string {
  const [century, rest] = [Number(digits.slice(0, 2)), Number(digits.slice(2))]
  if (century % 10 === 0 && rest < 10) return cardinal(digits)
  if (rest === 0) return `${belowHundred(century)} hundred`
  return `${belowHundred(century)} ${rest < 10 ? 'oh ' : ''}${belowHundred(rest)}`
}

/** Numbers as they are written: '1,234.50' to 'one thousand two hundred thirty-four point five zero'. */
export function decimal(text: string): string {
  const [whole = '', fraction] = text.replaceAll(',', '').split('.')
  const head = whole === '' ? '' : /^0\d/.test(whole) ? digitwise(whole) : cardinal(whole)
  return fraction ? `${head} point ${digitwise(fraction)}`.trim() : head
}
