export interface Currency {
  readonly one: string
  /** Default: with s. */
  readonly more?: string
  /** A hundredth, where it is spoken of. */
  readonly cent?: string
  readonly cents?: string
}

const cent = 'cent'
const dollar = { one: 'dollar', cent }
const euro = { one: 'euro', cent }
const pound = { one: 'pound', cent: 'penny', cents: 'pence' }
const yen = { one: 'yen', more: 'yen' }
const yuan = { one: 'yuan', more: 'yuan' }
const rupee = { one: 'rupee' }
const franc = { one: 'Swiss franc' }
const dollarOf = (country: string): Currency => ({ one: `${country} dollar`, cent })

/** By sign and by code. */
export const currencies: Readonly<Record<string, Currency>> = {
  ...{ $: dollar, '€': euro, '£': pound, '¥': yen, '￥': yen, '₹': rupee, '¢': { one: 'cent' } },
  ...{ '₩': { one: 'won', more: 'won' }, '₽': { one: 'ruble' }, '₺': { one: 'lira' }, '₪': { one: 'shekel' } },
  ...{ '฿': { one: 'baht', more: 'baht' }, '₫': { one: 'dong', more: 'dong' }, '₿': { one: 'bitcoin' } },
  ...{ US$: dollarOf('US'), A$: dollarOf('Australian'), AU$: dollarOf('Australian'), C$: dollarOf('Canadian') },
  ...{ CA$: dollarOf('Canadian'), NZ$: dollarOf('New Zealand'), HK$: dollarOf('Hong Kong') },
  ...{ S$: dollarOf('Singapore'), R$: { one: 'real', more: 'reais' } },
  ...{ USD: dollarOf('US'), EUR: euro, GBP: pound, JPY: yen, CNY: yuan, RMB: yuan, INR: rupee, CHF: franc },
  ...{ AUD: dollarOf('Australian'), CAD: dollarOf('Canadian'), NZD: dollarOf('New Zealand') },
}

/** What stands behind an amount. */
export const scales: Readonly<Record<string, string>> = {
  ...{ k: 'thousand', K: 'thousand', m: 'million', M: 'million', mn: 'million', mm: 'million', bn: 'billion' },
  ...{ b: 'billion', B: 'billion', tn: 'trillion', T: 'trillion', hundred: 'hundred', thousand: 'thousand' },
  ...{ million: 'million', billion: 'billion', trillion: 'trillion' },
}
