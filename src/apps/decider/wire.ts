import { serial } from '../../device/serial.ts'
import { readDataUrl } from '../../media/data_url.ts'
import { imageHeader } from '../../media/image_header.ts'
import type { SeenImage } from '../../models/qwen3_5/album.ts'
import type { Answer } from './answer.ts'
import type { AskOptions } from './api.ts'
import { readQuestionList } from './ask.ts'
import type { DeciderConfig } from './config.ts'
import { anything, flag, literal, mapOf, type Outcome, object, orNull, readFields, text } from './fields.ts'
import { type Eyes, pictured } from './images.ts'
import { COMPACT, dumps, Float, isObject, type JsonValue, renderState } from './json.ts'
import { type JsonAnswer, readJsonSchema } from './json_schema.ts'
import { checkPixels, checkSize, fullOfImages, LIMITS, type Limits } from './limits.ts'
import { type Context, countTokens } from './prompt.ts'
import type { Reader, Reading, Sheet } from './reader.ts'
import { parseBody, refuse, refusing } from './refusal.ts'
import { rememberSeen } from './schemas.ts'
import type { Logits, Row } from './scorer.ts'
import { type TypedSheets, typedSheets } from './typed.ts'

/** A request that was read, checked and put into rows. */
export interface WireCall {
  /** To be scored; none for a request without questions. Rows of several calls may be scored together. */
  readonly rows: readonly Row[]
  /** The body of the answer, JSON as the original spells it, from the logits of the rows. */
  answer(logits: Logits): string
}

/**
 * The original's HTTP requests without HTTP, and with a field more: `image`, a data URL, for a model that sees. All
 * methods reject with RequestError, which has the status and the body, or the signal's reason.
 */
export interface Wire {
  /** `POST /v1/systemone`: typed questions about a state. */
  systemOne(body: string, options?: WireOptions): Promise<WireCall>
  /** `POST /decide`: a schema of fields about a text, all in one row. */
  decide(body: string, options?: WireOptions): Promise<WireCall>
}

export type WireOptions = Pick<AskOptions, 'signal' | 'maxPixels'>
type ImageOfWire = WireOptions & { readonly image: string | null }

export interface WireParts {
  readonly reader: Reader
  readonly config: DeciderConfig
  readonly model: string
  readonly eyes: Eyes
  readonly limits?: Limits
}

export const PACKED_STATE_TOKENS = 1536 // the original's max_ctx_tokens

const SYSTEM_ONE = {
  state: { read: anything },
  questions: { read: mapOf<JsonValue>(object) },
  model: { read: orNull(text), otherwise: null },
  independent: { read: flag, otherwise: true },
  layout: { read: orNull(literal('state_first')), otherwise: null },
  image: { read: orNull(text), otherwise: null },
}
const DECIDE = {
  context: { read: text },
  schema: { read: anything, otherwise: null },
  image: { read: orNull(text), otherwise: null },
}

export function createWire({ reader, config, model, eyes, limits = LIMITS }: WireParts): Wire {
  const schemas = rememberSeen<TypedSheets>()
  const seeing = serial() // one image at a time, for pixels take many times the room of a file

  let toSee = 0
  async function see({ image: url, ...options }: ImageOfWire): Promise<SeenImage | undefined> {
    if (url === null) return undefined
    if (toSee >= limits.maxQueueImages) throw fullOfImages(toSee, limits)
    toSee++
    try {
      return await seeing(async () => {
        const image = readDataUrl(url)
        checkPixels(imageHeader(image), limits)
        return eyes.see({ ...options, image })
      }, options.signal)
    } finally {
      toSee--
    }
  }

  /** The questions in schema-first rows when they were asked before and the model is set to it, else state-first. */
  function sheetsOf(questions: ReadonlyMap<string, JsonValue>, independent: boolean, layout: 'state_first' | null) {
    const make = (layout: 'state_first' | 'schema_first') =>
      typedSheets(reader, config, readQuestionList(questions), { independent, layout, neutralize: false })
    const cached =
      config.schemaFirst && layout === null
        ? schemas.get(dumps([independent, questions]), () => make('schema_first'))
        : undefined
    return cached ?? make('state_first')
  }

  return {
    systemOne: (body, options) =>
      refusing(async () => {
        const { state, questions, independent, layout, image } = accepted(readFields(parseBody(body), SYSTEM_ONE))
        const typed = sheetsOf(questions, independent, image === null ? layout : 'state_first')
        const context = reader.context(renderState(state), config.maxStateTokens, typed.order)
        return call(typed.sheets, context, { ...options, image }, (readings, rows) => {
          const answers = new Map(typed.answers(readings).map(({ name, answer, keys }) => [name, spell(answer, keys)]))
          const cached = rows.reduce((sum, { prefix = 0 }) => sum + prefix, 0)
          const usage = new Map<string, JsonValue>([
            ['input_tokens', countTokens(rows)],
            ...(cached > 0 ? [['cached_tokens', cached] as const] : []),
            ['output_tokens', 0],
          ])
          return { model, answers, usage }
        })
      }),
    decide: (body, options) =>
      refusing(async () => {
        const { context: state, schema, image } = accepted(readFields(parseBody(body), DECIDE))
        const fields = readJsonSchema(schema)
        const context = reader.context(state, Math.min(PACKED_STATE_TOKENS, config.maxStateTokens), 'state_first')
        const sheets = fields.length > 0 ? [reader.sheet(fields, { lenient: true })] : []
        return call(sheets, context, { ...options, image }, (readings) => {
          const entries = fields.map(({ block, answer, keys }, i): [string, JsonValue] => {
            const { p, names } = readings[i]!
            return [block.question, spell(answer(p, names), keys(names))]
          })
          return new Map(entries)
        })
      }),
  }

  async function call(
    sheets: readonly Sheet[],
    context: Context,
    shown: ImageOfWire,
    answer: (readings: Reading[], rows: readonly Row[]) => JsonValue,
  ): Promise<WireCall> {
    const lengths = sheets.map(({ tokens }) => context.ids.length + tokens)
    checkSize(lengths, limits)
    const image = await see(shown)
    if (image) {
      checkSize(
        lengths.map((length) => image.tokens + length),
        limits,
      )
    }
    const rows = sheets.map((sheet) =>
      image ? pictured(sheet, context, image, { eyes, config }) : sheet.about(context),
    )
    checkSize(
      rows.map(({ ids }) => ids.length), // a text before which there is an image is encoded anew
      limits,
    )
    return {
      rows,
      answer: (logits) => {
        const readings = sheets.flatMap((sheet, i) => reader.read(sheet, logits[i]!))
        return dumps(answer(readings, rows), COMPACT)
      },
    }
  }
}

function accepted<A>(outcome: Outcome<A>): A {
  if ('errors' in outcome) throw refuse(422, outcome.errors)
  return outcome.value
}

/** An answer as JSON: its numbers are floats, its probabilities in the order of what they are of. */
function spell(answer: Answer | JsonAnswer, keys: readonly string[]): JsonValue {
  const spelled = Object.entries(answer).map(([name, value]): [string, JsonValue] => {
    if (name === 'legend') return [name, value] // as the request has it
    if (name !== 'probabilities') return [name, floats(value)]
    return [name, new Map(keys.map((key) => [key, new Float(value[key])]))]
  })
  return new Map(spelled)
}

function floats(value: JsonValue): JsonValue {
  if (typeof value === 'number') return new Float(value)
  return isObject(value) ? new Map(Object.entries(value).map(([key, member]) => [key, floats(member)])) : value
}
