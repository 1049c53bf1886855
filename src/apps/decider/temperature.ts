import { WeightsError } from '../../errors.ts'
import { isObject } from './json.ts'
import { readFloat } from './python.ts'

/** The kinds of answer that a model is calibrated for; `noul` is yes or no. */
export type AnswerType = 'choice' | 'noul' | 'score'
const TYPES: readonly string[] = ['choice', 'noul', 'score'] satisfies AnswerType[]

/** The calibration of a model: probabilities are softmax(logits / T). */
export interface Temperatures {
  readonly base: number
  readonly byType: Readonly<Partial<Record<AnswerType, number>>>
  /** T(n) = max(min, a + b ln n) for n options, instead of both others. */
  readonly byOptions?: { readonly a: number; readonly b: number; readonly min: number }
}

/** The T of one answer: an override, else by the number of options, else by type, else the model's one value. */
export function temperatureOf(t: Temperatures, type: AnswerType, options: number, override?: number): number {
  if (override !== undefined) return override
  if (t.byOptions) return Math.max(t.byOptions.min, t.byOptions.a + t.byOptions.b * Math.log(Math.max(options, 2)))
  return t.byType[type] ?? t.base
}

/** The three temperature keys of decider_config.json. Throws WeightsError that names the key. */
export function readTemperatures(config: Record<string, unknown>): Temperatures {
  const { temperature = 1, temperature_by_type: byType, temperature_by_options: byOptions } = config
  const base = typeof temperature === 'string' ? readFloat(temperature) : temperature
  if (!isTemperature(base)) refuse('temperature', temperature)
  if (byOptions === undefined) return { base, byType: readByType(byType) }
  if (byType !== undefined) refuse('temperature_by_options', byOptions, 'no temperature_by_type beside it')
  return { base, byType: {}, byOptions: readByOptions(byOptions) }
}

function readByType(map: unknown = {}): Temperatures['byType'] {
  const key = 'temperature_by_type'
  if (!isObject(map)) refuse(key, map, 'a map from choice, noul or score to a temperature')
  for (const [type, value] of Object.entries(map)) {
    if (!TYPES.includes(type)) refuse(key, type, 'only the keys choice, noul and score (a "bool" field is "noul")')
    if (!isTemperature(value)) refuse(`${key}.${type}`, value)
  }
  return map as Temperatures['byType']
}

function readByOptions(map: unknown): NonNullable<Temperatures['byOptions']> {
  const key = 'temperature_by_options'
  if (!isObject(map)) refuse(key, map, 'a map of a, b and min')
  const { a, b, min = 0.05, ...others } = map as Record<string, unknown>
  if (Object.keys(others).length > 0) refuse(key, others, 'only the keys a, b and min')
  if (!isFiniteNumber(a)) refuse(`${key}.a`, a, 'a finite number')
  if (!isFiniteNumber(b)) refuse(`${key}.b`, b, 'a finite number')
  if (!isTemperature(min)) refuse(`${key}.min`, min)
  return { a, b, min }
}

const isFiniteNumber = (value: unknown): value is number => Number.isFinite(value)
const isTemperature = (value: unknown): value is number => isFiniteNumber(value) && value > 0

function refuse(key: string, value: unknown, expected = 'a finite number above 0'): never {
  throw new WeightsError('format', `decider_config.json: ${key} has ${JSON.stringify(value)}, expected ${expected}`)
}
