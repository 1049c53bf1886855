import { InputError } from '../../errors.ts'
import { entriesOf, Float, isObject, type JsonObject, type JsonValue, member, render, repr, str } from './json.ts'
import { MAX_LABELS } from './labels.ts'
import type { Block } from './prompt.ts'
import { readFloat, SPACE } from './python.ts'
import type { Question, Questions } from './question.ts'

/** A question that was checked and put into the model's words. */
export type Asked =
  | {
      readonly type: 'choice'
      readonly question: string
      readonly names: readonly string[]
      readonly options: readonly string[]
    }
  | { readonly type: 'noul'; readonly question: string; readonly options: readonly string[] }
  | {
      readonly type: 'score'
      readonly question: string
      readonly legend: readonly string[]
      readonly isolated: boolean
    }

const MAX_LEVELS = 10
const LEVEL_NUMBER = new RegExp(String.raw`^${SPACE}*-?\p{Nd}+${SPACE}*:${SPACE}*`, 'u')

/**
 * Reads questions from JSON, for example a schema file: `{name: {type, instructions | question, criteria | options | levels}}`
 * with type choice (the default), score, noul or bool. Throws InputError that names the question.
 */
export const readQuestions = (json: unknown): Questions => Object.fromEntries(readQuestionList(json))

/** As readQuestions, in the order of the JSON even where names look like integers. */
export function readQuestionList(json: unknown): [name: string, Question][] {
  if (!isObject(json))
    throw new InputError(
      `questions: ${describeValue(json)} is no object, expected {name: {type, question, options}, ...}`,
    )
  return entriesOf(json).map(([name, spec]) => [name, readQuestion(name, spec)])
}

function readQuestion(name: string, spec: JsonValue): Question {
  if (!isObject(spec)) return refuse(name, 'an object {type, question, options}', spec)
  const type = member(spec, 'type') ?? 'choice'
  const question = {
    type: type === 'bool' ? 'noul' : type,
    instructions: member(spec, 'instructions') ?? member(spec, 'question') ?? null,
    criteria: member(spec, 'criteria') ?? member(spec, 'options') ?? member(spec, 'levels') ?? null,
    ...(member(spec, 'isolated') === false && { isolated: false }),
  } as Question
  ask(name, question)
  return question
}

/**
 * A question in the model's words: decider.md's typed questions. Throws InputError whose `cause` is the refusal in the
 * original's own words, which its HTTP interface answers with.
 */
export function ask(name: string, question: Question): Asked {
  if (!isObject(question)) return refuse(name, 'an object {type, instructions, criteria}', question)
  const { instructions, criteria = null } = question
  const text = instructions === null || instructions === undefined ? '' : render(instructions)
  if (question.type === 'noul') return askYesNo(name, text, criteria)
  if (question.type !== 'choice' && question.type !== 'score')
    return refuse(name, `unknown question type ${repr((question as { type?: JsonValue }).type ?? null)}`)
  if (text === '') return refuse(name, 'question without instructions')
  if (question.type === 'choice') return { type: 'choice', question: text, ...readOptions(name, criteria) }
  return { type: 'score', question: text, legend: readLevels(name, criteria), isolated: question.isolated !== false }
}

function askYesNo(name: string, text: string, criteria: unknown): Asked {
  const expected = 'noul criteria: a map of optional true/false descriptions'
  if (criteria !== null && !isObject(criteria)) return refuse(name, expected, criteria)
  const [no, yes] = ['false', 'true'].map((key) => (criteria ? (member(criteria, key) ?? null) : null)) as [
    JsonValue,
    JsonValue,
  ]
  if (text === '' && isBare(no) && isBare(yes))
    return refuse(name, 'noul question without instructions: criteria must describe true or false')
  const options = [describe('no', no), describe('yes', yes)]
  return { type: 'noul', question: text || 'Which answer fits the context?', options }
}

function readOptions(name: string, criteria: unknown) {
  const entries = readMap(criteria)
  if (!entries || entries.size < 2 || entries.size > MAX_LABELS)
    return refuse(name, `choice criteria: a map of 2..${MAX_LABELS} options`, criteria)
  return { names: [...entries.keys()], options: [...entries].map(([option, text]) => describe(option, text)) }
}

/** A list is a map without descriptions; names that occur twice count once. */
function readMap(criteria: unknown): Map<string, JsonValue> | undefined {
  if (isObject(criteria)) return new Map(entriesOf(criteria))
  return Array.isArray(criteria) ? new Map(criteria.map((item) => [str(item), null])) : undefined
}

function readLevels(name: string, criteria: unknown): string[] {
  const levels = Array.isArray(criteria)
    ? (criteria as JsonValue[])
    : isObject(criteria)
      ? sortByNumber(criteria)
      : undefined
  if (!levels || levels.length < 2 || levels.length > MAX_LEVELS)
    return refuse(name, `score criteria: an ordered list of 2..${MAX_LEVELS} level descriptions`, criteria)
  return levels.map(render)
}

/** Descriptions in the order of their numeric keys; undefined when a key is no number. */
function sortByNumber(map: JsonObject): JsonValue[] | undefined {
  const levels = entriesOf(map).map(([key, text]) => ({ at: readFloat(key), text }))
  if (levels.some(({ at }) => at === undefined)) return undefined
  return levels.sort((a, b) => a.at! - b.at!).map(({ text }) => text)
}

const isBare = (description: JsonValue) => description === null || description === ''
const describe = (name: string, text: JsonValue) => (isBare(text) ? name : `${name}: ${render(text)}`)

/**
 * The rows that ask a question: one, or with `isolatedLevels` (the model was trained so) one yes-or-no row per level of
 * a score, so that a level's fit does not depend on the other levels.
 */
export function rowsOf(asked: Asked, isolatedLevels: boolean): readonly Block[] {
  if (asked.type !== 'score') return [{ question: asked.question, options: asked.options }]
  if (!isolatedLevels || !asked.isolated)
    return [{ question: asked.question, options: asked.legend.map((level, i) => `${i}: ${level}`) }]
  return asked.legend.map((level) => ({
    question: `${asked.question}\nProposed answer: ${level.replace(LEVEL_NUMBER, '')}\nDoes the proposed answer fit?`,
    options: ['no', 'yes'],
  }))
}

function refuse(name: string, detail: string, found?: unknown): never {
  const has = found === undefined ? '' : `, has ${describeValue(found)}`
  throw new InputError(`question '${name}': ${detail}${has}`, 'input', { cause: detail })
}

function describeValue(value: unknown): string {
  if (Array.isArray(value)) {
    const distinct = new Set(value).size
    return `a list of ${value.length}${distinct < value.length ? `, ${distinct} distinct` : ''}`
  }
  if (isObject(value)) return `a map of ${entriesOf(value).length}`
  if (value instanceof Float) return String(value.value)
  return typeof value === 'string' ? JSON.stringify(value) : String(value)
}
