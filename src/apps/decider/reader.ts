import { DeviceError, InputError } from '../../errors.ts'
import type { Tokenizer } from '../../text/tokenizer.ts'
import { softmax } from './answer.ts'
import type { DeciderConfig } from './config.ts'
import { labelTable } from './labels.ts'
import { neutralizeNone, type Shown } from './neutral.ts'
import { type Block, buildRow, type Context } from './prompt.ts'
import type { Row, Scorer } from './scorer.ts'
import { type AnswerType, temperatureOf } from './temperature.ts'

/** A question of a row; `where` names it in errors. */
export interface RowQuestion {
  readonly where: string
  readonly type: AnswerType
  readonly block: Block
}

/** A row that is ready to be scored. */
export interface Prompt {
  readonly row: Row
  readonly questions: readonly (Shown & { readonly type: AnswerType })[]
}

/** Options as answers spell them, and their probabilities. */
export interface Reading {
  readonly names: readonly string[]
  readonly p: readonly number[]
}

export interface ReadOptions {
  readonly signal?: AbortSignal | undefined
  /** Overrides the model's calibration. */
  readonly temperature?: number | undefined
}

export interface Reader {
  /** Throws InputError for an empty question, for too few or too many options, and for a row over the model's limit. */
  plan(context: Context, questions: readonly RowQuestion[]): Prompt
  /** Probabilities of every question of every row. Throws InputError for a bad temperature, and the signal's reason. */
  read(prompts: readonly Prompt[], options: ReadOptions): Promise<Reading[][]>
}

export interface ReaderParts {
  readonly tokenizer: Tokenizer
  readonly config: DeciderConfig
  readonly scorer: Scorer
  /** Token ids of the answer labels, in the order of the scorer's logits; by default `labelTable(tokenizer)`. */
  readonly labels?: readonly number[]
  /** The longest row that the scorer takes. */
  readonly maxTokens?: number
}

/** From questions to probabilities: rows in, logits out, calibrated by answer type. */
export function createReader(parts: ReaderParts): Reader {
  const { tokenizer, config, scorer, labels = labelTable(tokenizer), maxTokens = Infinity } = parts
  const maxOptions = Math.min(config.maxOptions, labels.length)

  function check({ where, block }: RowQuestion): void {
    if (typeof block.question !== 'string' || !Array.isArray(block.options))
      throw new InputError(`${where}: expected { question: text, options: [text, ...] }`)
    const count = block.options.length
    if (block.question === '') throw new InputError(`${where}: has no text, expected a question`)
    if (count < 2) throw new InputError(`${where}: has ${count} options, expected 2 to ${maxOptions}; add options`)
    if (count > maxOptions)
      throw new InputError(
        `${where}: has ${count} options, expected 2 to ${maxOptions} (max_options ${config.maxOptions}, ` +
          `${labels.length} answer labels); split the question`,
      )
  }

  function plan(context: Context, questions: readonly RowQuestion[]): Prompt {
    questions.forEach(check)
    const shown = questions.map(({ type, block }) => {
      const same = { options: block.options, names: block.options }
      return { type, ...(config.neutralizeNone ? neutralizeNone(block.options) : same) }
    })
    const blocks = questions.map(({ block }, i) => ({ question: block.question, options: shown[i]!.options }))
    const row = buildRow(tokenizer, labels, context, blocks)
    if (row.ids.length > maxTokens)
      throw new InputError(
        `${questions[0]?.where}: the row has ${row.ids.length} tokens, expected at most ${maxTokens}; ` +
          'shorten the state, ask fewer questions in one row or lower maxStateTokens',
        'too_long',
      )
    return { row, questions: shown }
  }

  async function read(prompts: readonly Prompt[], options: ReadOptions) {
    const { signal, temperature } = options
    if (temperature !== undefined && !(temperature > 0 && temperature < Infinity))
      throw new InputError(
        `temperature: has ${temperature}, expected a finite number above 0; leave it out for the model's own`,
      )
    signal?.throwIfAborted()
    if (prompts.length === 0) return []
    const rows = prompts.map(({ row }) => row)
    const logits = await scorer.score(rows, { signal })
    return prompts.map(({ questions }, r) =>
      questions.map((question, s) => {
        const seen = logits[r]![s]!.subarray(0, question.options.length)
        if (!seen.every(Number.isFinite))
          throw new DeviceError(
            'validation',
            `decide: the logits of row ${r} are not finite numbers; try precision f32`,
          )
        const t = temperatureOf(config.temperatures, question.type, seen.length, temperature)
        return { names: question.names, p: softmax(seen, t) }
      }),
    )
  }

  return { plan, read }
}
