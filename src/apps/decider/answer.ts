import { round } from './python.ts'
import type { ChoiceQuestion, NamesOf, ScoreQuestion, YesNoQuestion } from './question.ts'

/** Keys and rounding (4 decimals, scores 2) are those of the original's JSON. */
export interface ChoiceAnswer<Name extends string = string, Abstained = never> {
  readonly type: 'choice'
  /** The most probable option; null when its probability is below `abstainBelow`. */
  readonly choice: Name | Abstained
  /** 0 at a uniform distribution, 1 at certainty: (n p_max - 1) / (n - 1). */
  readonly confidence: number
  readonly x_p_max: number
  /** 1 - entropy / ln n. */
  readonly certainty: number
  readonly probabilities: { readonly [name in Name]: number }
}

export interface YesNoAnswer {
  readonly type: 'noul'
  /** P(yes). */
  readonly noul: number
}

export interface ScoreAnswer {
  readonly type: 'score'
  /** The expected level, from 0. */
  readonly score: number
  /** 1 minus the mean distance from the most probable level over that of a uniform distribution. */
  readonly confidence: number
  readonly x_p_max: number
  readonly certainty: number
  readonly legend: { readonly [level: string]: string }
  readonly probabilities: { readonly [level: string]: number }
  /** P(yes) of each level, when levels were asked one by one. */
  readonly level_fit?: { readonly [level: string]: number }
  readonly fit_mass?: number
}

export type Answer = ChoiceAnswer<string, null> | YesNoAnswer | ScoreAnswer

/** The answer to a question, as a type. */
export type AnswerTo<Question, Abstained = never> =
  Question extends ChoiceQuestion<infer Criteria>
    ? ChoiceAnswer<NamesOf<Criteria>, Abstained>
    : Question extends YesNoQuestion
      ? YesNoAnswer
      : Question extends ScoreQuestion
        ? ScoreAnswer
        : never

/** softmax(logits / temperature), in double. */
export function softmax(logits: ArrayLike<number>, temperature: number): number[] {
  const scaled = Array.from(logits, (x) => x / temperature)
  const top = Math.max(...scaled)
  const powers = scaled.map((x) => Math.exp(x - top))
  const total = sum(powers)
  return powers.map((x) => x / total)
}

/** The first position of the largest value. */
export const argmax = (p: readonly number[]): number => p.indexOf(Math.max(...p))

export function answerChoice(
  names: readonly string[],
  p: readonly number[],
  abstainBelow = 0,
): ChoiceAnswer<string, null> {
  const q = normalize(p)
  const top = Math.max(...q)
  return {
    type: 'choice',
    choice: top < abstainBelow ? null : names[argmax(q)]!,
    confidence: round4(clip((q.length * top - 1) / (q.length - 1))),
    x_p_max: round4(top),
    certainty: certainty(q),
    probabilities: byKey(names, q),
  }
}

export const answerYesNo = (p: readonly number[]): YesNoAnswer => ({ type: 'noul', noul: round4(normalize(p)[1]!) })

/** A score whose levels were asked in one row: p is a distribution over them. */
export function answerScore(legend: readonly string[], p: readonly number[]): ScoreAnswer {
  const q = normalize(p)
  const levels = q.map((_, i) => String(i))
  return {
    type: 'score',
    score: round(sum(q.map((x, i) => x * i)), 2),
    confidence: scoreConfidence(q),
    x_p_max: round4(Math.max(...q)),
    certainty: certainty(q),
    legend: Object.fromEntries(legend.map((level, i) => [String(i), level])),
    probabilities: byKey(levels, q),
  }
}

/** A score whose levels were asked one by one: `fit` is P(yes) of each, and the distribution is their share. */
export function answerIsolated(legend: readonly string[], fit: readonly number[]): ScoreAnswer {
  const mass = sum(fit) || 1e-9
  const levels = fit.map((_, i) => String(i))
  return {
    ...answerScore(
      legend,
      fit.map((x) => x / mass),
    ),
    level_fit: byKey(levels, fit),
    fit_mass: round4(mass),
  }
}

function scoreConfidence(q: readonly number[]): number {
  const n = q.length
  const top = argmax(q)
  const known = sum(q) > 0 ? q : q.map(() => 1 / n) // no level fits at all: as good as uniform
  const distance = sum(known.map((x, i) => x * Math.abs(i - top)))
  const uniform = sum(known.map((_, i) => Math.abs(i - (n - 1) / 2))) / n
  return round4(clip(1 - distance / uniform))
}

function certainty(q: readonly number[]): number {
  const entropy = -sum(q.map((x) => (x > 0 ? x * Math.log(x) : 0)))
  return round4(Math.max(0, 1 - entropy / Math.log(q.length)))
}

function normalize(p: readonly number[]): readonly number[] {
  const total = sum(p)
  return total > 0 ? p.map((x) => x / total) : p
}

export const round4 = (x: number): number => round(x, 4)
export const byKey = (keys: readonly string[], p: readonly number[]): { [key: string]: number } =>
  Object.fromEntries(keys.map((key, i) => [key, round4(p[i]!)]))

const sum = (values: readonly number[]) => values.reduce((a, b) => a + b, 0)
const clip = (x: number) => Math.min(1, Math.max(0, x))
