import type { Device } from '../../device/device.ts'
import { DeviceError, InputError } from '../../errors.ts'
import { type Answer, type AnswerTo, answerChoice, answerIsolated, answerScore, answerYesNo, argmax } from './answer.ts'
import { type Asked, ask, rowsOf } from './ask.ts'
import type { Holder } from './holder.ts'
import { isObject, type JsonValue, renderState } from './json.ts'
import { type JsonAnswer, type JsonSchema, readJsonSchema } from './json_schema.ts'
import { type Context, countTokens, encodeContext } from './prompt.ts'
import type { Questions } from './question.ts'
import { createReader, type Prompt, type ReaderParts, type Reading } from './reader.ts'

const PACKED_STATE_TOKENS = 1536 // the original's max_ctx_tokens

export interface DecideOptions {
  readonly signal?: AbortSignal | undefined
  /** Tokens of the state that are read, `Context:` included; the rest is cut from its end and counted in the usage. */
  readonly maxStateTokens?: number | undefined
  /** One temperature for all answers instead of the model's calibration. */
  readonly temperature?: number | undefined
  /** Choices whose probability is below it become null. */
  readonly abstainBelow?: number | undefined
}
export type JsonOptions = Omit<DecideOptions, 'abstainBelow'>

export interface Usage {
  /** Tokens read; what all rows have in common counts once. */
  readonly inputTokens: number
  readonly outputTokens: 0
  /** Tokens of the state that were cut because it is longer than the limit. */
  readonly truncatedTokens: number
}

/** Answers, the model that gave them, and what they cost. */
export interface Answered<Answers> {
  readonly model: string
  readonly answers: Answers
  readonly usage: Usage
}

/** One typed answer per question. A choice can be null (`Abstained`) only when `abstainBelow` was given. */
export type Decision<Q extends Questions = Questions, Abstained = never> = Answered<{
  readonly [name in keyof Q]: AnswerTo<Q[name], Abstained>
}>
type AbstainedOf<Options> = 'abstainBelow' extends keyof Options ? null : never

export interface PackedQuestion {
  readonly question: string
  readonly options: readonly string[]
}

/** The original's result of `decide`; nothing is rounded. */
export interface PackedAnswer {
  readonly choice: string | null
  /** The largest probability. */
  readonly confidence: number
  readonly probs: { readonly [option: string]: number }
  readonly probsList: readonly number[]
}

export interface Decider {
  /** The model's name, `decider-<version>`. */
  readonly model: string
  /** Does the checkpoint say how to calibrate its probabilities? Without decider_config.json it does not. */
  readonly calibrated: boolean
  /** Where it runs now; `device.report.line` says so in words. */
  readonly device: Device
  /**
   * Answers typed questions about a state (text, or JSON that is shown as text), each in its own row, so that answers
   * do not influence each other: the original's `system_one`. Probabilities are calibrated by answer type.
   * Throws InputError for questions that cannot be asked, DeviceError when the device fails, and the signal's reason.
   */
  decide<const Q extends Questions, const O extends DecideOptions = Record<never, never>>(
    state: JsonValue,
    questions: Q,
    options?: O,
  ): Promise<Decision<Q, AbstainedOf<O>>>
  /** The original's `decide`: all questions of a context packed in one row, later ones seeing the earlier ones. */
  decidePacked(
    context: string,
    questions: readonly PackedQuestion[],
    options?: DecideOptions,
  ): Promise<Answered<readonly PackedAnswer[]>>
  /** The original's `decide_batch`: `decidePacked` of several contexts, scored together. */
  decideBatch(
    items: readonly { readonly context: string; readonly questions: readonly PackedQuestion[] }[],
    options?: DecideOptions,
  ): Promise<readonly Answered<readonly PackedAnswer[]>[]>
  /** The original's `decide_json`: a packed row, calibrated by type; `answers` is its output object to the letter. */
  decideJson(
    context: string,
    schema: JsonSchema,
    options?: JsonOptions,
  ): Promise<Answered<{ readonly [question: string]: JsonAnswer }>>
  /**
   * Loads the model again from where it came from, onto `device` or onto `this.device.reopen()`: after the device was
   * lost, or to move. Calls made before it reject with DeviceError 'lost', calls made meanwhile wait, and those that
   * come while it is under way share it. Rejects as `loadDecider` does; the model is then on no device until a later
   * `recover`. A device that it opened itself is disposed of with the decider, or when it moves on.
   */
  recover(device?: Device): Promise<void>
  /** Frees what loading made, and never a caller's device; calls in progress reject with DeviceError 'disposed'. */
  dispose(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

export interface DeciderParts extends ReaderParts {
  /** How answers name the model; by default the config's name. */
  readonly name?: string
  /** What knows the scorer's device; a scorer that runs on none goes without. */
  readonly holder?: Pick<Holder, 'device' | 'recover'>
  readonly dispose?: () => void | Promise<void>
}

/** The app over a loaded model. */
export function createDecider(parts: DeciderParts): Decider {
  const { tokenizer, config, name: model = config.name } = parts
  const reader = createReader(parts)
  const packedStateTokens = Math.min(PACKED_STATE_TOKENS, config.maxStateTokens)
  let disposing: Promise<void> | undefined

  function contextOf(state: string, maxTokens: number): Context {
    if (disposing) throw new DeviceError('disposed', `${model}: was disposed, expected a loaded model; load it again`)
    if (typeof state !== 'string') throw new InputError(`context: is of type ${typeof state}, expected text`)
    if (Number.isSafeInteger(maxTokens) && maxTokens > 0) return encodeContext(tokenizer, state, maxTokens)
    throw new InputError(`maxStateTokens: has ${maxTokens}, expected an integer from 1`)
  }

  const answered = <A>(answers: A, context: Context, prompts: readonly Prompt[]): Answered<A> => {
    const inputTokens = countTokens(prompts.map(({ row }) => row))
    return { model, answers, usage: { inputTokens, outputTokens: 0, truncatedTokens: context.truncatedTokens } }
  }

  const decide: Decider['decide'] = async (state, questions, options) => {
    const { maxStateTokens = config.maxStateTokens, abstainBelow = 0 }: DecideOptions = options ?? {}
    checkProbability('abstainBelow', abstainBelow)
    if (!isObject(questions)) throw new InputError(`questions: has ${questions}, expected { name: question, ... }`)
    const context = contextOf(renderState(state), Math.min(maxStateTokens, config.maxStateTokens))
    const asked = Object.entries(questions).map(([name, question]) => {
      const spoken = ask(name, question)
      return { name, asked: spoken, rows: rowsOf(spoken, config.isolatedLevels) }
    })
    const prompts = asked.flatMap(({ name, asked: { type }, rows }) =>
      rows.map((block) => reader.plan(context, [{ where: `question '${name}'`, type, block }])),
    )
    const readings = (await reader.read(prompts, options ?? {})).flat()
    const answers = asked.map(({ name, asked, rows }) => {
      const own = readings.splice(0, rows.length) // rows come in the order of the questions
      return [name, answerOf(asked, own, abstainBelow)]
    })
    return answered(Object.fromEntries(answers), context, prompts)
  }

  const decideBatch: Decider['decideBatch'] = async (items, options = {}) => {
    const { maxStateTokens = packedStateTokens, abstainBelow = 0 } = options
    checkProbability('abstainBelow', abstainBelow)
    const planned = items.map(({ context: text, questions }) => {
      if (!Array.isArray(questions)) throw new InputError(`questions: has ${questions}, expected a list`)
      const context = contextOf(text, maxStateTokens)
      const asked = questions.map((block, i) => ({ where: `question ${i + 1}`, type: 'choice' as const, block }))
      return { context, prompts: asked.length > 0 ? [reader.plan(context, asked)] : [] }
    })
    const readings = await reader.read(
      planned.flatMap(({ prompts }) => prompts),
      options,
    )
    return planned.map(({ context, prompts }) => {
      const own = prompts.flatMap(() => readings.shift()!)
      return answered(
        own.map((reading) => packedAnswer(reading, abstainBelow)),
        context,
        prompts,
      )
    })
  }

  const decideJson: Decider['decideJson'] = async (text, schema, options = {}) => {
    const fields = readJsonSchema(schema)
    const context = contextOf(text, options.maxStateTokens ?? packedStateTokens)
    const asked = fields.map((field) => ({ where: `schema['${field.block.question}']`, ...field }))
    const prompts = asked.length > 0 ? [reader.plan(context, asked)] : []
    const readings = (await reader.read(prompts, options)).flat()
    const answers = fields.map(({ block, answer }, i) => [block.question, answer(readings[i]!.p, readings[i]!.names)])
    return answered(Object.fromEntries(answers), context, prompts)
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
    calibrated: config.calibrated,
    get device() {
      return holder().device
    },
    recover: async (device) => holder().recover(device),
    decide,
    decidePacked: async (context, questions, options) => (await decideBatch([{ context, questions }], options))[0]!,
    decideBatch,
    decideJson,
    dispose,
    [Symbol.asyncDispose]: dispose,
  }
}

function checkProbability(name: string, value: number): void {
  if (value >= 0 && value <= 1) return
  throw new InputError(`${name}: has ${value}, expected a probability from 0 to 1`)
}

/** The answer from the readings of a question's rows. */
function answerOf(asked: Asked, readings: readonly Reading[], abstainBelow: number): Answer {
  const { p } = readings[0]!
  if (asked.type === 'choice') return answerChoice(asked.names, p, abstainBelow)
  if (asked.type === 'noul') return answerYesNo(p)
  if (readings.length === 1) return answerScore(asked.legend, p)
  return answerIsolated(
    asked.legend,
    readings.map(({ p: [, yes] }) => yes!),
  )
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
