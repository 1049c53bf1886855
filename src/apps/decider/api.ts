import type { Device } from '../../device/device.ts'
import type { AnswerTo } from './answer.ts'
import type { DeciderConfig } from './config.ts'
import type { ImageOptions } from './images.ts'
import type { JsonValue } from './json.ts'
import type { JsonAnswer, JsonSchema } from './json_schema.ts'
import type { Limits } from './limits.ts'
import type { Questions } from './question.ts'
import type { Scorer } from './scorer.ts'
import type { AnswerType } from './temperature.ts'
import type { TypedOptions } from './typed.ts'
import type { Wire } from './wire.ts'

/** How one call is answered. */
export interface AskOptions extends ImageOptions {
  readonly signal?: AbortSignal | undefined
  /** Tokens of the state that are read, `Context:` included; the rest is cut from its end and counted in the usage. */
  readonly maxStateTokens?: number | undefined
  /** One temperature for all answers instead of the model's calibration. */
  readonly temperature?: number | undefined
  /** Choices whose probability is below it become null. */
  readonly abstainBelow?: number | undefined
}
export type DecideOptions = AskOptions & TypedOptions
export interface BatchOptions extends AskOptions {
  /** The image of each state, in their order; where there is none, that of the options. */
  readonly images?: readonly ImageOptions['image'][] | undefined
}
export type JsonOptions = Omit<AskOptions, 'abstainBelow'>

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
export type AbstainedOf<Options> = 'abstainBelow' extends keyof Options ? null : never

/** Questions that were checked and encoded once, to be asked about many states. */
export interface Schema<Q extends Questions = Questions> {
  decide<const O extends AskOptions = Record<never, never>>(
    state: JsonValue,
    options?: O,
  ): Promise<Decision<Q, AbstainedOf<O>>>
  /** All states are scored together. */
  decideBatch<const O extends BatchOptions = Record<never, never>>(
    states: readonly JsonValue[],
    options?: O,
  ): Promise<readonly Decision<Q, AbstainedOf<O>>[]>
}

export interface PackedQuestion {
  readonly question: string
  readonly options: readonly string[]
  /** Whose temperature it has; `choice` by default, as in the original. */
  readonly type?: AnswerType
}

/** One of several contexts; its own image goes before that of the options. */
export interface PackedItem extends Pick<ImageOptions, 'image'> {
  readonly context: string
  readonly questions: readonly PackedQuestion[]
}

/** The original's result of `decide`; nothing is rounded. */
export interface PackedAnswer {
  readonly choice: string | null
  /** The largest probability. */
  readonly confidence: number
  readonly probs: { readonly [option: string]: number }
  readonly probsList: readonly number[]
}

/** A loaded model. As a Scorer it gives the logits of rows, those of `wire` for example. */
export interface Decider extends Scorer {
  /** The model's name, `decider-<version>`. */
  readonly model: string
  /** What decider_config.json says, the temperatures as they were asked for when loading. */
  readonly config: DeciderConfig
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
  /**
   * The original's `schema`: the same questions for many states. Unless `layout` says otherwise the questions come
   * first, and what a row begins with stays on the device from one call to the next. That costs accuracy, most with
   * many options and long states. Throws InputError for questions that cannot be asked.
   */
  schema<const Q extends Questions>(questions: Q, options?: TypedOptions): Schema<Q>
  /** The original's `decide`: all questions of a context packed in one row, later ones seeing the earlier ones. */
  decidePacked(
    context: string,
    questions: readonly PackedQuestion[],
    options?: AskOptions,
  ): Promise<Answered<readonly PackedAnswer[]>>
  /** The original's `decide_batch`: `decidePacked` of several contexts, scored together. */
  decideBatch(items: readonly PackedItem[], options?: AskOptions): Promise<readonly Answered<readonly PackedAnswer[]>[]>
  /** The original's `decide_json`: a packed row, calibrated by type; `answers` is its output object to the letter. */
  decideJson(
    context: string,
    schema: JsonSchema,
    options?: JsonOptions,
  ): Promise<Answered<{ readonly [question: string]: JsonAnswer }>>
  /** The original's HTTP requests without HTTP; limits that are not given are the original's, or the model's if lower. */
  wire(limits?: Partial<Limits>): Wire
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
