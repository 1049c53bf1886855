import { entriesOf, Float, isObject, type JsonObject, type JsonValue } from './json.ts'

/**
 * One entry of the list that the original's server (FastAPI over Pydantic 2) answers with where a request body has not
 * the form it should have.
 */
export interface FieldError {
  readonly type: string
  readonly loc: readonly (string | number)[]
  readonly msg: string
  readonly input: JsonValue
  readonly ctx?: { readonly [key: string]: string }
}

/** What a value is read as, or what is wrong with it. */
export type Outcome<A> = { readonly value: A } | { readonly errors: readonly FieldError[] }
export type Read<A> = (value: JsonValue, loc: FieldError['loc']) => Outcome<A>

const wrong = (type: string, msg: string, loc: FieldError['loc'], input: JsonValue, ctx?: FieldError['ctx']) => ({
  errors: [{ type, loc, msg, input, ...(ctx && { ctx }) }],
})

export const anything: Read<JsonValue> = (value) => ({ value })

export const text: Read<string> = (value, loc) =>
  typeof value === 'string' ? { value } : wrong('string_type', 'Input should be a valid string', loc, value)

export const orNull =
  <A>(read: Read<A>): Read<A | null> =>
  (value, loc) =>
    value === null ? { value } : read(value, loc)

export const literal =
  <A extends string>(expected: A): Read<A> =>
  (value, loc) => {
    if (value === expected) return { value: expected }
    const spelled = `'${expected}'`
    return wrong('literal_error', `Input should be ${spelled}`, loc, value, { expected: spelled })
  }

const WORDS = new Map<JsonValue, boolean>([
  ...['1', 'on', 't', 'true', 'y', 'yes', 1, true].map((word) => [word, true] as const),
  ...['0', 'off', 'f', 'false', 'n', 'no', 0, false].map((word) => [word, false] as const),
])

/** true or false, or a word or number that says so. */
export const flag: Read<boolean> = (value, loc) => {
  const plain = value instanceof Float ? value.value : typeof value === 'string' ? value.toLowerCase() : value
  const known = WORDS.get(plain)
  if (known !== undefined) return { value: known }
  if (typeof plain !== 'string' && !Number.isSafeInteger(plain))
    return wrong('bool_type', 'Input should be a valid boolean', loc, value)
  return wrong('bool_parsing', 'Input should be a valid boolean, unable to interpret input', loc, value)
}

/** An object whose members are all of a kind. */
export const mapOf =
  <A>(read: Read<A>): Read<ReadonlyMap<string, A>> =>
  (value, loc) => {
    if (!isObject(value)) return wrong('dict_type', 'Input should be a valid dictionary', loc, value)
    const map = new Map<string, A>()
    const errors: FieldError[] = []
    for (const [key, member] of entriesOf(value)) {
      const outcome = read(member, [...loc, key])
      if ('errors' in outcome) errors.push(...outcome.errors)
      else map.set(key, outcome.value)
    }
    return errors.length > 0 ? { errors } : { value: map }
  }

export const object: Read<JsonObject> = (value, loc) =>
  isObject(value) ? { value } : wrong('dict_type', 'Input should be a valid dictionary', loc, value)

type Fields<A> = { readonly [name in keyof A]: { readonly read: Read<A[name]>; readonly otherwise?: A[name] } }

/** A request body: the fields it names, `otherwise` standing for those that may be missing. Others are ignored. */
export function readFields<A>(body: JsonValue, fields: Fields<A>): Outcome<A> {
  const loc = ['body']
  if (!isObject(body)) {
    const msg = 'Input should be a valid dictionary or object to extract fields from'
    return body === null ? missing(loc, body) : wrong('model_attributes_type', msg, loc, body)
  }
  const given = new Map(entriesOf(body))
  const errors: FieldError[] = []
  const values: Partial<A> = {}
  for (const name of Object.keys(fields) as (keyof A & string)[]) {
    const { read, ...optional } = fields[name]
    const value = given.get(name)
    if (value === undefined) {
      if ('otherwise' in optional) values[name] = optional.otherwise as A[keyof A & string]
      else errors.push(...missing([...loc, name], body).errors)
      continue
    }
    const outcome = read(value, [...loc, name])
    if ('errors' in outcome) errors.push(...outcome.errors)
    else values[name] = outcome.value
  }
  return errors.length > 0 ? { errors } : { value: values as A }
}

const missing = (loc: FieldError['loc'], input: JsonValue) => wrong('missing', 'Field required', loc, input)
