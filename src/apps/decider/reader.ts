import { DeviceError, InputError } from '../../errors.ts'
import type { Tokenizer } from '../../text/tokenizer.ts'
import { softmax } from './answer.ts'
import type { DeciderConfig } from './config.ts'
import { labelTable } from './labels.ts'
import { neutralizeNone, type Shown } from './neutral.ts'
import {
  type Block,
  type ChatFrame,
  type Context,
  chatLayout,
  type Encoded,
  plainLayout,
  schemaFirstLayout,
} from './prompt.ts'
import type { Logits } from './scorer.ts'
import { softcap } from './softcap.ts'
import { type AnswerType, isAnswerType, type Order, temperatureOf } from './temperature.ts'

/** A question of a row; `where` names it in errors. */
export interface RowQuestion {
  readonly where: string
  readonly type: AnswerType
  readonly block: Block
}

/** The questions of one row, checked and encoded. */
export interface Sheet extends Encoded {
  /** The first of them, in errors. */
  readonly where: string
  readonly order: Order
  readonly questions: readonly (Shown & { readonly type: AnswerType })[]
}

/** Options as answers spell them, and their probabilities. */
export interface Reading {
  readonly names: readonly string[]
  readonly p: readonly number[]
}

export interface SheetOptions {
  /** By default the state comes first. */
  readonly order?: Order | undefined
  /** Shows "none of the above" in a neutral spelling; by default as the model's config has it. */
  readonly neutralize?: boolean | undefined
  /** Takes one option and a question without text too, as the original's server does. */
  readonly lenient?: boolean | undefined
}

/** From questions to rows, and from logits to probabilities. Computes nothing on a device. */
export interface Reader {
  context(state: string, maxTokens: number, order: Order): Context
  /**
   * Of one question or more. Throws InputError for an empty question, for too few or too many options, and for an order
   * that the model has not.
   */
  sheet(questions: readonly RowQuestion[], options?: SheetOptions): Sheet
  /** Probabilities of a sheet's questions from the logits of a row; `temperature` instead of the model's calibration. */
  read(sheet: Sheet, logits: Logits[number], temperature?: number): Reading[]
}

export interface ReaderParts {
  readonly tokenizer: Tokenizer
  readonly config: DeciderConfig
  /** Token ids of the answer labels, in the order of the scorer's logits; by default `labelTable(tokenizer)`. */
  readonly labels?: readonly number[]
  /** For a model of the chat layout. */
  readonly chat?: ChatFrame | undefined
  /** For a model whose logits are bent by it: cap * tanh(x / cap). */
  readonly softcap?: number | undefined
}

export function createReader(parts: ReaderParts): Reader {
  const { tokenizer, config, labels = labelTable(tokenizer), chat } = parts
  const maxOptions = Math.min(config.maxOptions, labels.length)
  const layouts = {
    state_first: chat ? chatLayout(tokenizer, labels, chat) : plainLayout(tokenizer, labels),
    schema_first: schemaFirstLayout(tokenizer, labels),
  }

  function layoutOf(order: Order) {
    if (order !== 'state_first' && order !== 'schema_first')
      throw new InputError(`layout: has ${order}, expected state_first or schema_first`)
    if (chat && order === 'schema_first')
      throw new InputError('layout: has schema_first, expected state_first; a chat model knows no other', 'unsupported')
    return layouts[order]
  }

  function check({ where, type, block }: RowQuestion, lenient: boolean): void {
    if (typeof block.question !== 'string' || !Array.isArray(block.options) || !block.options.every(isText))
      throw new InputError(`${where}: expected { question: text, options: [text, ...] }`)
    if (!isAnswerType(type)) throw new InputError(`${where}: has type ${type}, expected choice, noul or score`)
    const count = block.options.length
    const least = lenient ? 1 : 2
    if (block.question === '' && !lenient) throw new InputError(`${where}: has no text, expected a question`)
    const expected = `expected ${least} to ${maxOptions}`
    if (count < least) throw new InputError(`${where}: has ${count} options, ${expected}; add options`)
    if (count > maxOptions)
      throw new InputError(
        `${where}: has ${count} options, ${expected} (max_options ${config.maxOptions}, ` +
          `${labels.length} answer labels); split the question`,
      )
  }

  function sheet(questions: readonly RowQuestion[], options: SheetOptions = {}): Sheet {
    const { order = 'state_first', neutralize = config.neutralizeNone, lenient = false } = options
    for (const question of questions) check(question, lenient)
    const shown = questions.map(({ type, block }) => {
      const same = { options: block.options, names: block.options }
      return { type, ...(neutralize ? neutralizeNone(block.options) : same) }
    })
    const encoded = layoutOf(order).questions(
      questions.map(({ block }, i) => ({ question: block.question, options: shown[i]!.options })),
    )
    return { ...encoded, where: questions[0]!.where, order, questions: shown }
  }

  return {
    context: (state, maxTokens, order) => layoutOf(order).context(state, maxTokens),
    sheet,
    read: ({ questions, order }, logits, temperature) =>
      questions.map(({ type, names, options }, s) => {
        const seen = softcap(logits[s]!.subarray(0, options.length), parts.softcap)
        if (!seen.every(Number.isFinite))
          throw new DeviceError('validation', 'decide: the logits of a row are not finite numbers; try precision f32')
        const t = temperature ?? temperatureOf(config.temperatures, type, seen.length, order)
        return { names, p: softmax(seen, t) }
      }),
  }
}

const isText = (value: unknown): value is string => typeof value === 'string'
