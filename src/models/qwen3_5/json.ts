import { WeightsError } from '../../errors.ts'

export type Json = Readonly<Record<string, unknown>>

/** Reads values of one of a checkpoint's JSON files. All throw WeightsError naming the file and the key. */
export function jsonReader(file: string) {
  const wrong = (key: string, value: unknown, expected: string): WeightsError =>
    new WeightsError('unsupported', `${file}: ${key} is ${JSON.stringify(value) ?? 'missing'}, expected ${expected}`)

  return {
    wrong,
    object(value: unknown, key: string): Json {
      if (value && typeof value === 'object' && !Array.isArray(value)) return value as Json
      throw wrong(key, value, 'an object')
    },
    expect(t: Json, key: string, ...expected: (string | number | boolean)[]): void {
      if (!expected.includes(t[key] as string)) throw wrong(key, t[key], expected.join(' or '))
    },
    whole(t: Json, key: string): number {
      const value = t[key]
      if (isWhole(value)) return value
      throw wrong(key, value, 'a positive integer')
    },
    positive(t: Json, key: string): number {
      const value = t[key]
      if (typeof value === 'number' && Number.isFinite(value) && value > 0) return value
      throw wrong(key, value, 'a positive number')
    },
    flag(t: Json, key: string): boolean {
      const value = t[key]
      if (typeof value === 'boolean') return value
      throw wrong(key, value, 'true or false')
    },
  }
}

export const isWhole = (n: unknown): n is number => Number.isSafeInteger(n) && (n as number) > 0
