import type { JsonValue } from './json.ts'

/** Options of a choice: a list of names, or names with descriptions (null or "": the bare name). */
export type ChoiceCriteria<Name extends string = string> =
  | readonly Name[]
  | { readonly [name in Name]: JsonValue }
  | ReadonlyMap<Name, JsonValue>

/** Levels of a score from the lowest: a list of descriptions, or a map from a number to one. */
export type ScoreCriteria =
  | readonly JsonValue[]
  | { readonly [level: string]: JsonValue }
  | ReadonlyMap<string, JsonValue>

export interface YesNoCriteria {
  readonly true?: JsonValue
  readonly false?: JsonValue
}

export interface ChoiceQuestion<Criteria extends ChoiceCriteria = ChoiceCriteria> {
  readonly type: 'choice'
  readonly instructions: JsonValue
  readonly criteria: Criteria
}

export interface YesNoQuestion {
  readonly type: 'noul'
  readonly instructions: JsonValue
  readonly criteria?: YesNoCriteria | null
}

export interface ScoreQuestion {
  readonly type: 'score'
  readonly instructions: JsonValue
  readonly criteria: ScoreCriteria
  /** false asks all levels in one row even if the model was trained to ask level by level. */
  readonly isolated?: boolean
}

export type Question = ChoiceQuestion | YesNoQuestion | ScoreQuestion
/** Questions by name; the names are the keys of the answers and are never shown to the model. */
export type Questions = { readonly [name: string]: Question }

/** Which of these options? `options` has 2 to 255 names, bare or with descriptions; the answer's `choice` is one of them. */
export const choice = <const Criteria extends ChoiceCriteria>(
  question: JsonValue,
  options: Criteria,
): ChoiceQuestion<Criteria> => ({ type: 'choice', instructions: question, criteria: options })

/** Yes or no? Descriptions say what each means; with one of them the question may be empty. */
export const yesNo = (question: JsonValue, descriptions?: YesNoCriteria): YesNoQuestion => ({
  type: 'noul',
  instructions: question,
  ...(descriptions && { criteria: descriptions }),
})

/** Where on this scale? `levels` are 2 to 10 descriptions from the lowest; the answer's `score` is an expected level from 0. */
export const score = (
  question: JsonValue,
  levels: ScoreCriteria,
  options: { isolated?: boolean } = {},
): ScoreQuestion => ({
  type: 'score',
  instructions: question,
  criteria: levels,
  ...options,
})

/** The names of a choice's options, as a type. */
export type NamesOf<Criteria> = Criteria extends readonly (infer Name extends string)[]
  ? Name
  : Criteria extends ReadonlyMap<infer Name extends string, JsonValue>
    ? Name
    : keyof Criteria & string
