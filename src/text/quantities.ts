import { cardinal, decimal, plural } from './cardinals.ts'
import { currencies, scales } from './currencies.ts'
import { unitNamed, unitPattern } from './units.ts'

/** A comma before one or two digits is a decimal one, as on the Continent. */
const number = String.raw`(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+,\d\d?(?![\d,])|\d+(?:\.\d+)?|\.\d+)`
const start = String.raw`(?<![\p{L}\d.,/])`
const dash = String.raw`\s?[-–—−]\s?`
const end = String.raw`(?![\p{L}\d])`

const anyOf = (signs: Iterable<string>): string =>
  [...signs]
    .sort((a, b) => b.length - a.length)
    .map((sign) => sign.replace(/[$.]/g, String.raw`\$&`))
    .join('|')

const isOne = (n: string): boolean => n === '1'

const pointed = (n: string): string => n.replace(/,(?=\d\d?$)/, '.')

/** '10' and '20' to 'ten to twenty'. */
const span = (from: string, to: string | undefined): string =>
  to === undefined ? decimal(pointed(from)) : `${decimal(pointed(from))} to ${decimal(pointed(to))}`

/** Amounts with the sign of a currency before or behind: $3.50, £1m, 12 €, $10–$20, US$5/month. */
export function readMoney(text: string): string {
  const sign = `(${anyOf(Object.keys(currencies))})`
  const scale = String.raw`(?:\s?(${anyOf(Object.keys(scales))})${end})?`
  const per = String.raw`(?:\s?/\s?(${unitPattern}|[a-z]+)${end})?`
  const before = new RegExp(
    String.raw`(?<![\p{L}\d])${sign}\s?(${number})(?:${dash}(?:\1)?(${number}))?${scale}${per}`,
    'gu',
  )
  const behind = new RegExp(String.raw`${start}(${number})(?:${dash}(${number}))?${scale}\s?${sign}${end}${per}`, 'gu')
  const words = (name: string, from: string, to?: string, many?: string, unit?: string): string =>
    `${moneyWords(name, from, to, many)}${unit === undefined ? '' : ` per ${unitNamed(unit)?.one ?? unit}`}`
  const scaled = new RegExp(
    String.raw`(?<![\p{L}\d])(${sign}\s?${number}\s?(?:${anyOf(Object.keys(scales))}))${dash}(?=\2)`,
    'gu',
  )
  return text
    .replace(scaled, '$1 to ')
    .replace(before, (_, name, from, to, many, unit) => words(name, from, to, many, unit))
    .replace(behind, (_, from, to, many, name, unit) => words(name, from, to, many, unit))
    .replace(
      new RegExp(String.raw`${start}(${number})\s?(mn|bn|tn)${end}`, 'gu'),
      (_, n, many) => `${decimal(pointed(n))} ${scales[many]}`,
    )
}

function moneyWords(sign: string, from: string, to: string | undefined, many: string | undefined): string {
  const { one, more = plural(one), cent, cents = cent && plural(cent) } = currencies[sign]!
  const scale = many === undefined ? '' : ` ${scales[many]}`
  const parts = /^([\d,]*)\.(\d\d)$/.exec(pointed(from))
  if (parts === null || to !== undefined || scale !== '' || cent === undefined)
    return `${span(from, to)}${scale} ${isOne(from) && to === undefined && scale === '' ? one : more}`
  const [whole, small] = [parts[1]!.replaceAll(',', '') || '0', parts[2]!.replace(/^0/, '')]
  const counted = (n: string, [single, several]: [string, string]): string[] =>
    Number(n) === 0 ? [] : [`${cardinal(n)} ${isOne(n) ? single : several}`]
  const named = [...counted(whole, [one, more]), ...counted(small, [cent, cents!])]
  return named.join(' and ') || `zero ${more}`
}

export function readPercent(text: string): string {
  const pattern = new RegExp(String.raw`${start}(${number})(?:\s?%?${dash}(${number}))?\s?([%‰])`, 'gu')
  return text.replace(pattern, (_, from, to, sign) => `${span(from, to)} ${sign === '%' ? 'percent' : 'per mille'}`)
}

/** 5 kg, 3.2 km/h, 20°C, 120 m², 5'6". */
export function readUnits(text: string): string {
  const amount = `${start}(${number})(?:${dash}(${number}))?`
  const one = (from: string, to: string | undefined): boolean => isOne(from) && to === undefined
  const counted = (n: string, unit: string, units = plural(unit)): string => `${cardinal(n)} ${isOne(n) ? unit : units}`
  return text
    .replace(/(\d+)\s?[°º]\s?(\d{1,2})[′'’](?:\s?(\d{1,2})[″"”])?/g, (_, degrees, minutes, seconds) =>
      [counted(degrees, 'degree'), counted(minutes, 'minute'), ...(seconds ? [counted(seconds, 'second')] : [])].join(
        ' ',
      ),
    )
    .replace(
      /(?<![\w.,])(\d{1,2})(?:['’′]|\s?ft\.?|\sfeet|\sfoot)\s?(\d{1,2})(?:["”″]|''|’’|\s?in\b)/g,
      (_, feet: string, inches: string) => {
        const tall = counted(feet, 'foot', 'feet')
        return Number(inches) === 0 ? tall : `${tall} ${counted(inches, 'inch', 'inches')}`
      },
    )
    .replace(/(?<![\w.,])(\d+)([′″])/g, (_, n: string, sign: string) =>
      sign === '′' ? counted(n, 'foot', 'feet') : counted(n, 'inch', 'inches'),
    )
    .replace(
      new RegExp(String.raw`(?<![\w/.,])(\d+ )?(\d{1,2}/\d{1,2})[\s-]?(${unitPattern})(?![\p{L}\d²³/])`, 'gu'),
      (all, whole, part, symbol) => {
        const unit = unitNamed(symbol)
        if (unit === undefined) return all
        if (whole !== undefined) return `${whole}${part} ${unit.more}`
        return `${part} of ${/^(?:[aeio]|hour)/.test(unit.one) ? 'an' : 'a'} ${unit.one}`
      },
    )
    .replace(new RegExp(String.raw`${amount}\s?[°º]\s?(?:([CF])${end})?`, 'gu'), (all, from, to, scale) => {
      const name = scale === undefined ? '' : scale === 'C' ? ' Celsius' : ' Fahrenheit'
      const rest = name === '' && /\s$/.test(all) ? ' ' : ''
      return `${span(from, to)} ${one(from, to) ? 'degree' : 'degrees'}${name}${rest}`
    })
    .replace(/(?<=\b(?:degree|minute|second)s?)(?=[NSEW]\b)/g, ' ')
    .replace(
      new RegExp(String.raw`${amount}([\s-]?)(${unitPattern})(?:/(${unitPattern}))?(?![\p{L}\d²³]|\.\d)`, 'gu'),
      (all, from, to, space, symbol, per) => {
        const unit = unitNamed(symbol)
        const below = per === undefined ? undefined : unitNamed(per)
        if (unit === undefined || (unit.apart && space !== ' ' && below === undefined)) return all
        const name = one(from, to) ? unit.one : unit.more
        return `${span(from, to)} ${name}${below === undefined ? '' : ` per ${below.inside}`}`
      },
    )
}
