/** Python's `\s`, which is not JavaScript's: the separators \x1c-\x1f and \x85 belong to it, the byte order mark does not. */
export const SPACE = String.raw`[\t-\r\x1c- \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]`

const ENDS = new RegExp(`^${SPACE}+|${SPACE}+$`, 'gu')
const DECIMAL = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i

/** `str.strip()`. */
export const strip = (text: string): string => text.replace(ENDS, '')

/** `float(text)` for a finite decimal number; undefined for any other text. */
export function readFloat(text: string): number | undefined {
  const trimmed = strip(text)
  const value = Number(trimmed)
  return DECIMAL.test(trimmed) && Number.isFinite(value) ? value : undefined
}

/**
 * `round(x, digits)`: the nearest decimal to the exact binary value, ties to the even digit (0.03125 -> 0.0312).
 * `toFixed` is exact too, but ends ties away from zero; x is a tie when x * 2^(digits + 1) is an odd integer.
 */
export function round(x: number, digits: number): number {
  const isTie = Math.abs(x * 2 ** (digits + 1)) % 2 === 1
  const towardsZero = x.toFixed(digits + 1).slice(0, digits ? -1 : -2) // of a tie, which ends in 5
  return Number(isTie && /[02468]$/.test(towardsZero) ? towardsZero : x.toFixed(digits))
}

/**
 * A number as `json.dumps` spells it. A JavaScript number does not say whether it was `1` or `1.0`: a safe integer is
 * taken for an int, everything else for a float (-0 too, because an int has no signed zero).
 */
export function spellNumber(x: number): string {
  return Number.isSafeInteger(x) && !Object.is(x, -0) ? String(x) : spellFloat(x)
}

/** A float as `json.dumps` spells it: with a point or an exponent, NaN and Infinity by name. */
export function spellFloat(x: number): string {
  if (Number.isNaN(x)) return 'NaN'
  if (!Number.isFinite(x)) return x > 0 ? 'Infinity' : '-Infinity'
  if (Object.is(x, -0)) return '-0.0'
  const [mantissa, power] = x.toExponential().split('e') as [string, string]
  const exponent = Number(power)
  if (exponent >= -4 && exponent < 16) return Number.isInteger(x) ? `${x}.0` : String(x)
  return `${mantissa}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`
}

/** `repr(text)`, with what has no glyph in ASCII escaped. */
export function quote(text: string): string {
  const mark = text.includes("'") && !text.includes('"') ? '"' : "'"
  const escaped = text.replace(UNPRINTABLE, (c) => {
    if (c === "'" || c === '"') return c === mark ? `\\${c}` : c
    return ESCAPES[c] ?? `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`
  })
  return mark + escaped + mark
}
const UNPRINTABLE = /[\p{Cc}\xa0\xad\\'"]/gu
const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' }
