import { belowHundred, cardinal, ordinal, year } from './cardinals.ts'

/**
 * Numbers as Zonos' own normaliser reads them, whatever the language but Japanese, mistakes included: '3.14' is 'three
 * point fourteen', '£1' 'one pounds', '5:30' 'five:thirty'. The voices were trained on texts like these. It equals
 * inflect's words up to 36 digits, where inflect gives up; longer numbers are read digit by digit.
 */
export function upstreamNumbers(text: string): string {
  return text
    .replace(/[0-9][0-9,]+[0-9]/g, (number) => number.replaceAll(',', ''))
    .replace(/£([0-9,]*[0-9]+)/g, '$1 pounds')
    .replace(/\$([0-9.,]*[0-9]+)/g, (_, amount: string) => dollars(amount))
    .replace(/([0-9]+)\.([0-9]+)/g, '$1 point $2')
    .replace(/([0-9]+)(?:st|nd|rd|th)/g, (_, digits: string) => ordinal(digits, { and: true, commas: true }))
    .replace(/[0-9]+/g, whole)
}

function dollars(amount: string): string {
  const parts = amount.replaceAll(',', '').split('.')
  if (parts.length > 2) return `${amount} dollars`
  const [whole, cents] = [parts[0] || '0', parts[1] || '0'].map((digits) => BigInt(digits))
  const counted = (n: bigint, name: string): string[] => (n === 0n ? [] : [`${n} ${name}${n === 1n ? '' : 's'}`])
  return [...counted(whole!, 'dollar'), ...counted(cents!, 'cent')].join(', ') || 'zero dollars'
}

function whole(digits: string): string {
  const number = digits.replace(/^0+(?=\d)/, '')
  const n = number.length === 4 ? Number(number) : 0
  if (n <= 1000 || n >= 3000)
    // no year
    return cardinal(number, { commas: true })
  return n < 1010 ? `ten oh ${belowHundred(n % 100)}` : year(number)
}
