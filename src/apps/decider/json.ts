import { InputError } from '../../errors.ts'
import { quote, spellFloat, spellNumber } from './python.ts'

/** A number that Python calls a float though it is whole: `1.0`, which JavaScript does not tell from `1`. */
export class Float {
  readonly value: number
  constructor(value: number) {
    this.value = value
  }
}

/**
 * A JSON value. A Map is an object whose integer-like keys keep their place ("10" before "9"), a bigint an integer of
 * any size. `parseJson` makes them where the text needs them.
 */
export type JsonValue = null | boolean | number | bigint | Float | string | readonly JsonValue[] | JsonObject
export type JsonObject = { readonly [key: string]: JsonValue } | ReadonlyMap<string, JsonValue>

const INDEX_FROM = 8 // lists of this length or more show the model their indices

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Float)

export const entriesOf = (object: JsonObject): [string, JsonValue][] =>
  object instanceof Map ? [...object] : Object.entries(object)

/** One member of an object; undefined when it has none of that name. */
export const member = (object: JsonObject, key: string): JsonValue | undefined =>
  entriesOf(object).find(([name]) => name === key)?.[1]

/** What stands between the parts of JSON. */
export interface Separators {
  readonly item: string
  readonly key: string
}
const SPACED: Separators = { item: ', ', key: ': ' }
/** Those of HTTP answers. */
export const COMPACT: Separators = { item: ',', key: ':' }

/** `json.dumps(value, ensure_ascii=False)`: numbers and escapes as Python spells them. */
export function dumps(value: JsonValue, separators = SPACED): string {
  if (typeof value === 'string') return JSON.stringify(value)
  if (typeof value === 'number') return spellNumber(value)
  if (value === null || typeof value === 'boolean' || typeof value === 'bigint') return String(value)
  if (value instanceof Float) return spellFloat(value.value)
  if (Array.isArray(value)) return `[${value.map((item) => dumps(item, separators)).join(separators.item)}]`
  if (isObject(value)) {
    const members = entriesOf(value).map(([key, v]) => JSON.stringify(key) + separators.key + dumps(v, separators))
    return `{${members.join(separators.item)}}`
  }
  throw new InputError(
    `json: a value is of type ${typeof value}, expected JSON (null, boolean, number, string, list or object)`,
  )
}

/** Text as it is, anything else as JSON: how instructions, descriptions and levels are shown to the model. */
export const render = (value: JsonValue): string => (typeof value === 'string' ? value : dumps(value))

/** The state as the model reads it: text as it is, JSON with an `_index` in the elements of long lists. */
export function renderState(state: JsonValue): string {
  if (typeof state === 'string') return state
  try {
    return dumps(withIndices(state))
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause // a stack overflow
    throw new InputError('state: is nested too deeply or contains itself, expected JSON', 'input', { cause })
  }
}

function withIndices(value: JsonValue): JsonValue {
  if (Array.isArray(value)) {
    const elements: JsonValue[] = value.map(withIndices)
    if (elements.length < INDEX_FROM) return elements
    // A Map keeps `_index` in front even when the element has one of its own, whose value wins.
    return elements.map((element, i) => {
      const members: [string, JsonValue][] = isObject(element) ? entriesOf(element) : [['value', element]]
      return new Map<string, JsonValue>([['_index', i], ...members])
    })
  }
  return isObject(value) ? new Map(entriesOf(value).map(([key, v]) => [key, withIndices(v)])) : value
}

/** `repr(value)` of a value that came as JSON. */
export function repr(value: JsonValue): string {
  if (typeof value === 'string') return quote(value)
  if (value === null) return 'None'
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (Array.isArray(value)) return `[${value.map(repr).join(', ')}]`
  if (isObject(value)) {
    const members = entriesOf(value).map(([key, v]) => `${quote(key)}: ${repr(v)}`)
    return `{${members.join(', ')}}`
  }
  return dumps(value).replace('NaN', 'nan').replace('Infinity', 'inf')
}

/** `str(value)`: text as it is. */
export const str = (value: JsonValue): string => (typeof value === 'string' ? value : repr(value))

/** `type(value).__name__`. */
export function typeName(value: JsonValue): string {
  if (Array.isArray(value)) return 'list'
  if (isObject(value)) return 'dict'
  if (typeof value === 'number') return Number.isSafeInteger(value) ? 'int' : 'float'
  if (typeof value === 'string') return 'str'
  if (typeof value === 'boolean') return 'bool'
  if (typeof value === 'bigint') return 'int'
  return value === null ? 'NoneType' : 'float'
}
