import { InputError } from '../../errors.ts'
import type { ImageInput } from '../../media/image.ts'
import type { Decider, Schema } from './api.ts'
import { readQuestions } from './ask.ts'
import { type ImageOf, type ImageOptions, inlineImage } from './images.ts'
import { COMPACT, dumps, isObject, type JsonValue, member } from './json.ts'
import { parseJson } from './json_reader.ts'
import type { Questions } from './question.ts'

/** A row of the input. */
export interface Line {
  readonly number: number
  readonly text: string
}

export interface ClassifyOptions extends Pick<ImageOptions, 'maxPixels'> {
  /** Default: `inlineImage`. */
  readonly imageOf?: ImageOf
}

/** Answers rows of JSON: a line of JSON for each, in their order. */
export type Classify = (lines: readonly Line[], signal?: AbortSignal) => Promise<string[]>

const EXPECTED = '{"state": text or JSON, "image"?: ..., "questions"?: {...}, "id"?: ...}'
const MOST_SCHEMAS = 128

interface Item {
  readonly schema: Schema
  readonly state: JsonValue
  readonly image: ImageInput | undefined
}
type Outcome = { readonly error: string } | { readonly model: string; readonly answers: object; readonly usage: object }

/**
 * Rows `{state, image?, questions?, id?}`, where `questions` stand for rows that have none of their own. An answer is
 * `{row, id?, model, answers, usage}`; a row that cannot be asked has `{row, id?, error}`, and the others are answered.
 * Rows of one call that share their questions are scored together.
 */
export function classifier(
  decider: Pick<Decider, 'schema'>,
  questions: Questions | undefined,
  { imageOf = inlineImage, maxPixels }: ClassifyOptions = {},
): Classify {
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
    const image = member(row, 'image') ?? null
    if (image !== null && typeof image !== 'string')
      throw new InputError(`image: has ${dumps(image)}, expected text that names it`)
    return {
      state,
      schema: schemaOf(member(row, 'questions')),
      image: image === null ? undefined : imageOf(image),
    }
  }

  /** All states at once; where that fails, one by one, so that a row answers for itself. */
  async function ask(schema: Schema, items: readonly Item[], signal: AbortSignal | undefined): Promise<Outcome[]> {
    const states = items.map(({ state }) => state)
    const images = items.map(({ image }) => image)
    try {
      return [...(await schema.decideBatch(states, { signal, images, maxPixels }))]
    } catch (error) {
      if (!(error instanceof InputError)) throw error
      if (items.length === 1) return [{ error: error.message }]
      const outcomes: Outcome[] = []
      for (const item of items) outcomes.push(...(await ask(schema, [item], signal)))
      return outcomes
    }
  }

  return async (lines, signal) => {
    const heads: Map<string, JsonValue>[] = []
    const outcomes: Outcome[] = []
    const asked = new Map<Schema, { readonly items: Item[]; readonly places: number[] }>()
    lines.forEach(({ number, text }, place) => {
      const head = new Map<string, JsonValue>([['row', number]])
      heads.push(head)
      try {
        const row = parseJson(text)
        const id = isObject(row) ? member(row, 'id') : undefined
        if (id !== undefined) head.set('id', id)
        const item = read(row)
        const group = asked.get(item.schema) ?? { items: [], places: [] }
        asked.set(item.schema, group)
        group.items.push(item)
        group.places.push(place)
      } catch (error) {
        if (!(error instanceof InputError)) throw error
        outcomes[place] = { error: error.message }
      }
    })
    const groups = [...asked].map(async ([schema, { items, places }]) => {
      const found = await ask(schema, items, signal)
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
