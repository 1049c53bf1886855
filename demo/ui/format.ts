/** Numbers for people, in the page's own language. */
const number = (digits: number) => new Intl.NumberFormat('en', { maximumFractionDigits: digits })

export const percent = (p: number): string => `${(100 * p).toFixed(1)} %`
export const count = (n: number): string => number(0).format(n)

/** '2.75 GB', '16.3 MB', '340 kB' */
export function bytes(n: number): string {
  const [unit, size] = n >= 1e9 ? ['GB', n / 1e9] : n >= 1e6 ? ['MB', n / 1e6] : ['kB', n / 1e3]
  return `${number(size < 10 ? 2 : size < 100 ? 1 : 0).format(size)} ${unit}`
}

export const ms = (n: number): string => `${number(n < 10 ? 1 : 0).format(n)} ms`
export const seconds = (n: number): string => `${number(n < 10 ? 2 : 1).format(n)} s`

/** '40 s', '3 min', '1 h 20 min' */
export function duration(n: number): string {
  const minutes = Math.round(n / 60)
  if (n < 90) return `${Math.ceil(n)} s`
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}
