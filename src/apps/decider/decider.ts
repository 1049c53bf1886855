import { DeviceError, InputError } from '../../errors.ts'
import type { SeenImage } from '../../models/qwen3_5/album.ts'
import { argmax } from './answer.ts'
import type { Answered, AskOptions, BatchOptions, Decider, Decision, PackedAnswer, Schema } from './api.ts'
import type { Holder } from './holder.ts'
import { type Eyes, type ImageOptions, noEyes, pictured } from './images.ts'
import { isObject, type JsonValue, renderState } from './json.ts'
import { readJsonSchema } from './json_schema.ts'
import { LIMITS } from './limits.ts'
import { type Context, countTokens } from './prompt.ts'
import type { Questions } from './question.ts'
import { createReader, type ReaderParts, type Reading, type Sheet } from './reader.ts'
import type { Row, Scorer } from './scorer.ts'
import type { Order } from './temperature.ts'
import { type TypedOptions, typedSheets } from './typed.ts'
import { createWire, PACKED_STATE_TOKENS } from './wire.ts'

export interface DeciderParts extends ReaderParts {
  readonly scorer: Scorer
  /** The longest row that the scorer takes. */
  readonly maxTokens?: number
  /** How answers name the model; by default the config's name. */
  readonly name?: string
  /** What knows the scorer's device; a scorer that runs on none goes without. */
  readonly holder?: Pick<Holder, 'device' | 'recover'>
  /** Of a model that sees. */
  readonly eyes?: Eyes
  readonly dispose?: () => void | Promise<void>
}

/** Questions about a state, each sheet a row. */
interface Request {
  readonly context: Context
  readonly sheets: readonly Sheet[]
  readonly image?: ImageOptions['image']
}

/** The app over a loaded model. */
export function createDecider(parts: DeciderParts): Decider {
  const { config, scorer, maxTokens = Infinity, name: model = config.name, eyes = noEyes } = parts
  const reader = createReader(parts)
  const packedStateTokens = Math.min(PACKED_STATE_TOKENS, config.maxStateTokens)
  let disposing: Promise<void> | undefined

  function expectLoaded(): void {
    if (disposing) throw new DeviceError('disposed', `${model}: was disposed, expected a loaded model; load it again`)
  }

  function contextOf(state: string, maxStateTokens: number, order: Order = 'state_first'): Context {
    expectLoaded()
    if (typeof state !== 'string') throw new InputError(`context: is of type ${typeof state}, expected text`)
    if (Number.isSafeInteger(maxStateTokens) && maxStateTokens > 0) return reader.context(state, maxStateTokens, order)
    throw new InputError(`maxStateTokens: has ${maxStateTokens}, expected an integer from 1`)
  }

  const score: Scorer['score'] = async (rows, options) => {
    expectLoaded()
    options?.signal?.throwIfAborted()
    return rows.length === 0 ? [] : scorer.score(rows, options)
  }

  /** Scores all rows of all requests together; their answers are made of the readings of a request's sheets. */
  async function answer<A>(
    requests: readonly Request[],
    options: AskOptions,
    answersOf: (readings: Reading[], request: number) => A,
  ): Promise<Answered<A>[]> {
    const { signal, temperature } = options
    checkTemperature(temperature)
    const asked = requests.some(({ image = options.image }) => image !== undefined)
    const images = asked ? await seen(requests, options) : [] // without images a call is under way when it returns
    const rows = requests.map(({ sheets, context }, i) => sheets.map((sheet) => rowOf(sheet, context, images[i])))
    const logits = await score(rows.flat(), { signal })
    let at = 0
    return requests.map(({ sheets, context }, i) => {
      const readings = sheets.flatMap((sheet) => reader.read(sheet, logits[at++]!, temperature))
      const { truncatedTokens } = context
      const usage = { inputTokens: countTokens(rows[i]!), outputTokens: 0, truncatedTokens } as const
      return { model, answers: answersOf(readings, i), usage }
    })
  }

  /** The image of each request. */
  async function seen(requests: readonly Request[], options: AskOptions): Promise<(SeenImage | undefined)[]> {
    const images: (SeenImage | undefined)[] = []
    for (const { image = options.image } of requests) images.push(await eyes.see({ ...options, image }))
    return images
  }

  function rowOf(sheet: Sheet, context: Context, image: SeenImage | undefined): Row {
    const tokens = context.ids.length + sheet.tokens
    if (tokens > maxTokens)
      throw new InputError(
        `${sheet.where}: the row has ${tokens} tokens, expected at most ${maxTokens}; ` +
          'shorten the state, ask fewer questions in one row or lower maxStateTokens',
        'too_long',
      )
    if (!image) return sheet.about(context)
    const row = pictured(sheet, context, image, { eyes, config })
    if (row.ids.length <= maxTokens) return row
    const sizes = `the row has ${row.ids.length} tokens, ${image.tokens} of them the image's, expected at most ${maxTokens}`
    throw new InputError(`image: ${sizes}; shorten the state or lower maxPixels`, 'too_long')
  }

  function schema<const Q extends Questions>(questions: Q, options: TypedOptions = {}): Schema<Q> {
    if (!isObject(questions)) throw new InputError(`questions: has ${questions}, expected { name: question, ... }`)
    const typed = typedSheets(reader, config, Object.entries(questions), { layout: 'schema_first', ...options })
    const decideBatch = async (states: readonly JsonValue[], options: BatchOptions = {}) => {
      const { maxStateTokens = config.maxStateTokens, abstainBelow = 0, images = [] } = options
      checkProbability('abstainBelow', abstainBelow)
      const most = Math.min(maxStateTokens, config.maxStateTokens)
      const requests = states.map((state, i) => ({
        context: contextOf(renderState(state), most, typed.order),
        sheets: typed.sheets,
        image: images[i],
      }))
      const answersOf = (readings: Reading[]) =>
        Object.fromEntries(typed.answers(readings, abstainBelow).map(({ name, answer }) => [name, answer]))
      return (await answer(requests, options, answersOf)) as unknown as Decision<Q, never>[]
    }
    return {
      decide: async (state, options) => (await decideBatch([state], options))[0]!,
      decideBatch,
    }
  }

  const decideBatch: Decider['decideBatch'] = async (items, options = {}) => {
    const { maxStateTokens = packedStateTokens, abstainBelow = 0 } = options
    checkProbability('abstainBelow', abstainBelow)
    const requests = items.map(({ context: text, questions, image }) => {
      if (!Array.isArray(questions)) throw new InputError(`questions: has ${questions}, expected a list`)
      const context = contextOf(text, maxStateTokens)
      const asked = questions.map((block, i) => ({ where: `question ${i + 1}`, type: block.type ?? 'choice', block }))
      return { context, sheets: asked.length > 0 ? [reader.sheet(asked)] : [], image }
    })
    return answer(requests, options, (readings) => readings.map((reading) => packedAnswer(reading, abstainBelow)))
  }

  const decideJson: Decider['decideJson'] = async (text, schema, options = {}) => {
    const fields = readJsonSchema(schema)
    const context = contextOf(text, options.maxStateTokens ?? packedStateTokens)
    const sheets = fields.length > 0 ? [reader.sheet(fields)] : []
    const [answered] = await answer([{ context, sheets }], options, (readings) =>
      Object.fromEntries(
        fields.map(({ block, answer }, i) => [block.question, answer(readings[i]!.p, readings[i]!.names)]),
      ),
    )
    return answered!
  }

  const holder = (): Pick<Holder, 'device' | 'recover'> => {
    if (parts.holder) return parts.holder
    throw new DeviceError('unavailable', `${model}: its scorer runs on no device, expected a model of loadDecider`)
  }

  function dispose(): Promise<void> {
    disposing ??= (async () => parts.dispose?.())()
    return disposing
  }

  return {
    model,
    config,
    calibrated: config.calibrated,
    get device() {
      return holder().device
    },
    recover: async (device) => holder().recover(device),
    score,
    async decide(state, questions, options) {
      const { independent, isolated, image } = options ?? {}
      const { layout = config.schemaFirst && image === undefined ? 'schema_first' : 'state_first' } = options ?? {}
      return schema(questions, { independent, isolated, layout }).decide(state, options)
    },
    schema,
    decidePacked: async (context, questions, options) => (await decideBatch([{ context, questions }], options))[0]!,
    decideBatch,
    decideJson,
    wire(limits) {
      const { maxRowTokens, ...others } = { ...LIMITS, ...limits }
      return createWire({
        reader,
        config,
        model,
        eyes,
        limits: { ...others, maxRowTokens: Math.min(maxRowTokens, maxTokens) },
      })
    },
    dispose,
    [Symbol.asyncDispose]: dispose,
  }
}

function checkProbability(name: string, value: number): void {
  if (value >= 0 && value <= 1) return
  throw new InputError(`${name}: has ${value}, expected a probability from 0 to 1`)
}

function checkTemperature(value: number | undefined): void {
  if (value === undefined || (value > 0 && value < Infinity)) return
  throw new InputError(`temperature: has ${value}, expected a finite number above 0; leave it out for the model's own`)
}

function packedAnswer({ names, p }: Reading, abstainBelow: number): PackedAnswer {
  const best = argmax(p)
  const confidence = p[best]!
  return {
    choice: confidence < abstainBelow ? null : names[best]!,
    confidence,
    probs: Object.fromEntries(names.map((name, i) => [name, p[i]!])),
    probsList: p,
  }
}
