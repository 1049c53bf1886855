import { InputError } from '../../errors.ts'
import { type Answer, answerChoice, answerIsolated, answerScore, answerYesNo } from './answer.ts'
import { type Asked, ask, rowsOf } from './ask.ts'
import type { DeciderConfig } from './config.ts'
import type { Question } from './question.ts'
import type { Reader, Reading, RowQuestion, Sheet, SheetOptions } from './reader.ts'
import type { Order } from './temperature.ts'

/** How typed questions are put; the defaults are the model's. */
export interface TypedOptions {
  /** false puts all questions into one row, where they see those before them; true by default. */
  readonly independent?: boolean | undefined
  /** Scores ask level by level, which takes independent rows. */
  readonly isolated?: boolean | undefined
  /** What comes first in a row. Schema-first costs accuracy and lets the questions be run once for many states. */
  readonly layout?: Order | undefined
}

/** Typed questions, encoded for any number of states. */
export interface TypedSheets {
  readonly order: Order
  readonly sheets: readonly Sheet[]
  /** The answers from the readings of the sheets, one after another. */
  answers(readings: readonly Reading[], abstainBelow?: number): NamedAnswer[]
}

export interface NamedAnswer {
  readonly name: string
  readonly answer: Answer
  /** What its probabilities are of, in order. */
  readonly keys: readonly string[]
}

/** Checks typed questions and plans their rows: one per question, level by level for scores, or one for all. */
export function typedSheets(
  reader: Reader,
  config: DeciderConfig,
  questions: Iterable<readonly [name: string, Question]>,
  options: TypedOptions & Pick<SheetOptions, 'neutralize'> = {},
): TypedSheets {
  const { independent = true, isolated = config.isolatedLevels, neutralize } = options
  const { layout: order = config.schemaFirst ? 'schema_first' : 'state_first' } = options
  for (const [key, value] of Object.entries({ independent, isolated }))
    if (typeof value !== 'boolean') throw new InputError(`${key}: has ${value}, expected true or false`)
  const asked = Array.from(questions, ([name, question]) => {
    const spoken = ask(name, question)
    return { name, asked: spoken, blocks: rowsOf(spoken, isolated && independent) }
  })
  const all = asked.flatMap(({ name, asked: { type }, blocks }) =>
    blocks.map((block): RowQuestion => ({ where: `question '${name}'`, type, block })),
  )
  const rows = independent ? all.map((question) => [question]) : all.length > 0 ? [all] : []
  return {
    order,
    sheets: rows.map((row) => reader.sheet(row, { order, neutralize })),
    answers(readings, abstainBelow = 0) {
      const rest = [...readings]
      return asked.map(({ name, asked, blocks }) => {
        const own = rest.splice(0, blocks.length)
        const answer = answerOf(asked, own, abstainBelow)
        return { name, answer, keys: keysOf(asked) }
      })
    },
  }
}

function keysOf(asked: Asked): readonly string[] {
  if (asked.type === 'choice') return asked.names
  return asked.type === 'score' ? asked.legend.map((_, i) => String(i)) : []
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
