import { InputError } from '../../errors.ts'
import { argmax, byKey, round4 } from './answer.ts'
import { entriesOf, isObject, type JsonObject, type JsonValue, member, render, repr, typeName } from './json.ts'
import { readFloat, round } from './python.ts'
import type { RowQuestion } from './reader.ts'

/** A field of `decideJson`; without a type it is a choice. */
export type JsonField =
  | { readonly type?: 'choice'; readonly options: readonly string[] }
  | { readonly type: 'bool' }
  | { readonly type: 'scale'; readonly legend: readonly JsonValue[] | JsonObject }
/** Fields by question text. */
export type JsonSchema = { readonly [question: string]: JsonField } | ReadonlyMap<string, JsonField>

/** What `decideJson` answers to a field: the original's keys in its order. */
export type JsonAnswer =
  | { noul: number; type: 'noul' }
  | { choice: string; confidence: number; type: 'choice'; probabilities: { [option: string]: number } }
  | {
      score: number
      confidence: number
      type: 'scale'
      legend: readonly JsonValue[] | JsonObject
      probabilities: { [level: string]: number }
    }

/** A field as a question of the row, and how its probabilities become an answer. */
export interface Field extends RowQuestion {
  /** What the probabilities are of, in order; those of a choice are the options as answers spell them. */
  keys(names: readonly string[]): readonly string[]
  /** `names` are the options as answers spell them. */
  answer(p: readonly number[], names: readonly string[]): JsonAnswer
}

const HELP =
  'schema: a map {question: field}, each field one of {"type": "choice", "options": [option strings]}, {"type": "bool"} ' +
  'or {"type": "scale", "legend": [descriptions] or {level number: description}}'

/** Reads the original's `decide_json` schema. Throws InputError in the original's words. */
export function readJsonSchema(schema: unknown): Field[] {
  if (schema === null || schema === undefined) return refuse('schema is required')
  if (!isObject(schema)) return refuse(`schema is a ${typeName(schema as JsonValue)}`)
  return entriesOf(schema).map(([question, field]) => readField(question, field))
}

function readField(question: string, field: JsonValue): Field {
  const where = `schema[${repr(question)}]`
  if (!isObject(field)) return refuse(`${where} is a ${typeName(field)}, not a field object`)
  const type = member(field, 'type') ?? 'choice'
  if (type === 'bool') return boolField(question, where)
  if (type === 'choice') return choiceField(question, where, member(field, 'options'))
  if (type === 'scale') return scaleField(question, where, member(field, 'legend'))
  return refuse(`${where}: unknown field type ${repr(type)}`)
}

const boolField = (question: string, where: string): Field => ({
  where,
  type: 'noul',
  block: { question, options: ['no', 'yes'] },
  keys: () => [],
  answer: (p) => ({ noul: round4(p[1]!), type: 'noul' }),
})

function choiceField(question: string, where: string, options: JsonValue | undefined): Field {
  if (!Array.isArray(options) || options.length === 0 || options.some((option) => typeof option !== 'string'))
    return refuse(`${where}: "options" must be a non-empty list of strings`)
  return {
    where,
    type: 'choice',
    block: { question, options },
    keys: (names) => names,
    answer: (p, names) => ({
      choice: names[argmax(p)]!,
      confidence: round4(Math.max(...p)),
      type: 'choice',
      probabilities: byKey(names, p),
    }),
  }
}

function scaleField(question: string, where: string, legend: JsonValue | undefined): Field {
  const levels = readLegend(where, legend)
  const keys = levels.map(({ key }) => key)
  return {
    where,
    type: 'score',
    block: { question, options: levels.map(({ key, text }) => `${key}: ${render(text)}`) },
    keys: () => keys,
    answer: (p) => ({
      score: round(
        levels.reduce((sum, { at }, i) => sum + at * p[i]!, 0),
        2,
      ),
      confidence: round4(Math.max(...p)),
      type: 'scale',
      legend: legend as JsonObject,
      probabilities: byKey(keys, p),
    }),
  }
}

function readLegend(where: string, legend: JsonValue | undefined): { key: string; at: number; text: JsonValue }[] {
  const isList = Array.isArray(legend)
  if (!isList && !isObject(legend)) return refuseLegend(where)
  const entries: [string, JsonValue][] = isList
    ? legend.map((text, i) => [String(i), text])
    : entriesOf(legend as JsonObject)
  if (entries.length === 0) return refuseLegend(where)
  const levels = entries.map(([key, text]) => {
    const at = readFloat(key)
    if (at === undefined)
      return refuse(`${where}: the keys of a "legend" map must be finite numbers, e.g. {"0": "none", "1": "low"}`)
    return { key, at, text }
  })
  if (!entries.every(([, text]) => isFiniteJson(text)))
    return refuse(`${where}: the "legend" contains a value that is not finite JSON (NaN or Infinity)`)
  return levels.sort((a, b) => a.at - b.at)
}

const refuseLegend = (where: string) =>
  refuse(`${where}: "legend" must be a non-empty list or {level number: description} map`)

function isFiniteJson(value: JsonValue): boolean {
  if (typeof value === 'number') return Number.isFinite(value)
  if (Array.isArray(value)) return value.every(isFiniteJson)
  return !isObject(value) || entriesOf(value).every(([, inner]) => isFiniteJson(inner))
}

function refuse(what: string): never {
  throw new InputError(`${what}; ${HELP}`)
}
