import { AssertionError } from 'node:assert'
import { inspect } from 'node:util'

/** A value that decides by itself what equals it. */
interface Asymmetric {
  matches(value: unknown): boolean
}
const isAsymmetric = (x: unknown): x is Asymmetric => typeof x === 'object' && x !== null && 'matches' in x

type Check = (received: unknown, ...args: never[]) => boolean

// As vitest defines them. A matcher that is not here is undefined, so that a test which needs it fails.
const matchers = {
  toBe: (a, b: unknown) => Object.is(a, b),
  toEqual: (a, b: unknown) => equals(a, b),
  toMatchObject: (a, b: object) => equals(a, b, true),
  toBeDefined: (a) => a !== undefined,
  toBeUndefined: (a) => a === undefined,
  toBeCloseTo: (a: number, b: number, digits?: number) => close(a, b, digits),
  toBeGreaterThan: (a: number, b: number) => a > b,
  toBeGreaterThanOrEqual: (a: number, b: number) => a >= b,
  toBeLessThan: (a: number, b: number) => a < b,
  toBeLessThanOrEqual: (a: number, b: number) => a <= b,
  toContain: (a: string | Iterable<unknown>, b: unknown) =>
    typeof a === 'string' ? a.includes(b as string) : [...a].includes(b),
  toHaveLength: (a: ArrayLike<unknown>, n: number) => a.length === n,
  toMatch: (a: string, b: RegExp | string) => (typeof b === 'string' ? a.includes(b) : b.test(a)),
  toBeInstanceOf: (a, b: abstract new (...args: never[]) => unknown) => (a as unknown) instanceof b,
  toThrow: (a, b?: Thrown) => throws(a, b),
} as const satisfies Record<string, (received: never, ...args: never[]) => boolean>

type Thrown = string | RegExp | Error | Asymmetric | (abstract new (...args: never[]) => unknown)
type Matchers<Result> = {
  [K in keyof typeof matchers]: (
    ...args: Parameters<(typeof matchers)[K]> extends [unknown, ...infer A] ? A : []
  ) => Result
}
type Expectation = Matchers<void> & {
  not: Matchers<void>
  resolves: Matchers<Promise<void>> & { not: Matchers<Promise<void>> }
  rejects: Matchers<Promise<void>> & { not: Matchers<Promise<void>> }
}

function expectValue(received: unknown, message?: string): Expectation {
  const assert = (name: string, check: Check, not: boolean, value: unknown, args: unknown[]): void => {
    if (check(value, ...(args as never[])) !== not) return
    const told = `${message ? `${message}: ` : ''}${show(value)} ${not ? 'not ' : ''}${name} ${args.map(show).join(', ')}`
    throw new AssertionError({ message: told, actual: value, stackStartFn: expectValue })
  }
  const group = <R>(call: (name: string, check: Check, args: unknown[]) => R): Matchers<R> =>
    Object.fromEntries(
      Object.entries(matchers).map(([name, check]) => [name, (...args: unknown[]) => call(name, check as Check, args)]),
    ) as Matchers<R>
  const now = (not: boolean) => group((name, check, args) => assert(name, check, not, received, args))
  const settled = (settle: () => Promise<unknown>, not: boolean) =>
    group(async (name, check, args) => assert(name, check, not, await settle(), args))
  const resolved = async () => await received
  const rejected = async () => {
    const promise = typeof received === 'function' ? received() : received
    const outcome = await Promise.resolve(promise).then(
      (value: unknown) => ({ value }),
      (error: unknown) => ({ error }),
    )
    if ('error' in outcome) return outcome.error
    throw new AssertionError({ message: `${message ?? 'a promise'}: resolved to ${show(outcome.value)}, not rejected` })
  }
  return {
    ...now(false),
    not: now(true),
    resolves: { ...settled(resolved, false), not: settled(resolved, true) },
    rejects: { ...settled(rejected, false), not: settled(rejected, true) },
  }
}

export const expect = Object.assign(expectValue, {
  closeTo: (b: number, digits?: number): Asymmetric => ({ matches: (a) => close(a as number, b, digits) }),
  stringMatching: (b: RegExp | string): Asymmetric => ({
    matches: (a) => typeof a === 'string' && new RegExp(b).test(a),
  }),
  objectContaining: (b: object): Asymmetric => ({
    matches: (a) => Object.entries(b).every(([key, value]) => equals((a as Record<string, unknown>)[key], value)),
  }),
})

const show = (value: unknown): string => {
  const text = inspect(value, { depth: 4, maxArrayLength: 20, breakLength: 120 })
  return text.length > 1000 ? `${text.slice(0, 1000)}...` : text
}

const close = (a: number, b: number, digits = 2): boolean => a === b || Math.abs(a - b) < 10 ** -digits / 2

const kindOf = (x: object): string => Object.prototype.toString.call(x)

/** Equal all through; members that are undefined do not count. With `part`, objects may have more than is expected. */
function equals(a: unknown, b: unknown, part = false): boolean {
  if (isAsymmetric(b)) return b.matches(a)
  if (Object.is(a, b)) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  const some = part && Object.getPrototypeOf(b) === Object.prototype // members of anything, errors too
  if (!some && kindOf(a) !== kindOf(b)) return false
  if (b instanceof Error) return (a as Error).message === b.message && (a as Error).name === b.name
  if (b instanceof Set || b instanceof Map) {
    const [own, others] = [[...(a as Iterable<unknown>)], [...b]]
    return own.length === others.length && own.every((x) => others.some((y) => equals(x, y)))
  }
  const list = Array.isArray(b) || ArrayBuffer.isView(b)
  if (list && (a as ArrayLike<unknown>).length !== (b as unknown as ArrayLike<unknown>).length) return false
  const [left, right] = [a as Record<string, unknown>, b as Record<string, unknown>]
  const keys = new Set([...Object.keys(right), ...(part && !list ? [] : Object.keys(left))])
  return [...keys].every((key) => (part && !(key in left) ? false : equals(left[key], right[key], part)))
}

/** `received` is a function to call, or what a promise was rejected with. */
function throws(received: unknown, expected?: Thrown): boolean {
  let error = received
  if (typeof received === 'function') {
    try {
      received()
      return false
    } catch (thrown) {
      error = thrown
    }
  }
  const message = error instanceof Error ? error.message : String(error)
  if (expected === undefined) return true
  if (typeof expected === 'string') return message.includes(expected)
  if (expected instanceof RegExp) return expected.test(message)
  if (typeof expected === 'function') return error instanceof expected
  return isAsymmetric(expected) ? expected.matches(error) : message === expected.message
}
