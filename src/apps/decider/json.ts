import { InputError } from '../../errors.ts'
import { spellNumber } from './python.ts'

/** A JSON value. A Map is an object whose integer-like keys keep their place ("10" before "9"). */
export type JsonValue = null | boolean | number | bigint | string | readonly JsonValue[] | JsonObject
export type JsonObject = { readonly [key: string]: JsonValue } | ReadonlyMap<string, JsonValue>

const INDEX_FROM = 8 // lists of this length or more show the model their indices

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export const entriesOf = (object: JsonObject): [string, JsonValue][] =>
  object instanceof Map ? [...object] : Object.entries(object)

/** One member of an object; undefined when it has none of that name. */
export const member = (object: JsonObject, key: string): JsonValue | undefined =>
  entriesOf(object).find(([name]) => name === key)?.[1]

/** `json.dumps(value, ensure_ascii=False)`: ", " and ": " between the parts, numbers and escapes as Python spells them. */
export function dumps(value: JsonValue): string {
  if (typeof value === 'string') return JSON.stringify(value)
  if (typeof value === 'number') return spellNumber(value)
  if (value === null || typeof value === 'boolean' || typeof value === 'bigint') return String(value)
  if (Array.isArray(value)) return `[${value.map(dumps).join(', ')}]`
  if (isObject(value))
    return `{${entriesOf(value)
      .map(([k, v]) => `${JSON.stringify(k)}: ${dumps(v)}`)
      .join(', ')}}`
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
