import { InputError } from '../../errors.ts'
import type { Decider, Schema } from './api.ts'
import { readQuestions } from './ask.ts'
import { COMPACT, dumps, isObject, type JsonValue, member } from './json.ts'
import { parseJson } from './json_reader.ts'
import type { Questions } from './question.ts'

/** A row of the input. */
export interface Line {
  readonly number: number
  readonly text: string
}

/** Answers rows of JSON: a line of JSON for each, in their order. */
export type Classify = (lines: readonly Line[], signal?: AbortSignal) => Promise<string[]>

const EXPECTED = '{"state": text or JSON, "questions"?: {...}, "id"?: ...}'
const MOST_SCHEMAS = 128

interface Item {
  readonly schema: Schema
  readonly state: JsonValue
}
type Outcome = { readonly error: string } | { readonly model: string; readonly answers: object; readonly usage: object }

/**
 * Rows `{state, questions?, id?}`, where `questions` stand for rows that have none of their own. An answer is `{row, id?,
 * model, answers, usage}`; a row that cannot be asked has `{row, id?, error}`, and the others are answered. Rows of
 * one call that share their questions are scored together.
 */
export function classifier(decider: Pick<Decider, 'schema'>, questions: Questions | undefined): Classify {
  const schemaFor = (questions: Questions): Schema => decider.schema(questions, { layout: 'state_first' })
  const common = questions && schemaFor(questions)
  const schemas = new Map<string, Schema>() // by their JSON, the one used last at the end

  function schemaOf(own: JsonValue | undefined): Schema {
    if (own === undefined) return common ?? refuse('questions')
    const key = dumps(own)
    const schema = schemas.get(key) ?? schemaFor(readQuestions(own))
    schemas.delete(key)
    schemas.set(key, schema)
    for (const [oldest] of schemas) if (schemas.size > MOST_SCHEMAS) schemas.delete(oldest)
    return schema
  }

  function read(row: JsonValue): Item {
    if (!isObject(row)) return refuse('state')
    const state = member(row, 'state')
    if (state === undefined) return refuse('state')
    return { state, schema: schemaOf(member(row, 'questions')) }
  }

  /** All states at once; where that fails, one by one, so that a row answers for itself. */
  async function ask(
    schema: Schema,
    states: readonly JsonValue[],
    signal: AbortSignal | undefined,
  ): Promise<Outcome[]> {
    try {
      return [...(await schema.decideBatch(states, { signal }))]
    } catch (error) {
      if (!(error instanceof InputError)) throw error
      if (states.length === 1) return [{ error: error.message }]
      const outcomes: Outcome[] = []
      for (const state of states) outcomes.push(...(await ask(schema, [state], signal)))
      return outcomes
    }
  }

  return async (lines, signal) => {
    const heads: Map<string, JsonValue>[] = []
    const outcomes: Outcome[] = []
    const asked = new Map<Schema, { readonly states: JsonValue[]; readonly places: number[] }>()
    lines.forEach(({ number, text }, place) => {
      const head = new Map<string, JsonValue>([['row', number]])
      heads.push(head)
      try {
        const row = parseJson(text)
        const id = isObject(row) ? member(row, 'id') : undefined
        if (id !== undefined) head.set('id', id)
        const { schema, state } = read(row)
        const group = asked.get(schema) ?? { states: [], places: [] }
        asked.set(schema, group)
        group.states.push(state)
        group.places.push(place)
      } catch (error) {
        if (!(error instanceof InputError)) throw error
        outcomes[place] = { error: error.message }
      }
    })
    const groups = [...asked].map(async ([schema, { states, places }]) => {
      const found = await ask(schema, states, signal)
      found.forEach((outcome, i) => {
        outcomes[places[i]!] = outcome
      })
    })
    await Promise.all(groups)
    return heads.map((head, i) => `${dumps(head, COMPACT).slice(0, -1)},${JSON.stringify(outcomes[i]).slice(1)}`)
  }
}

const refuse = (what: string): never => {
  throw new InputError(`the row has no ${what}, expected ${EXPECTED}`)
}
