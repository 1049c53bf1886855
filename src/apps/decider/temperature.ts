import { InputError, WeightsError } from '../../errors.ts'
import { isObject } from './json.ts'
import { readFloat } from './python.ts'

/** The kinds of answer that a model is calibrated for; `noul` is yes or no. */
export type AnswerType = 'choice' | 'noul' | 'score'
const TYPES: readonly string[] = ['choice', 'noul', 'score'] satisfies AnswerType[]
export const isAnswerType = (value: unknown): value is AnswerType => TYPES.includes(value as string)

/** What comes first in a row. Models are calibrated for each order by itself. */
export type Order = 'state_first' | 'schema_first'

type ByType = Readonly<Partial<Record<AnswerType, number>>>

/** The calibration of a model: probabilities are softmax(logits / T). */
export interface Temperatures {
  readonly base: number
  readonly byType: ByType
  /** T(n) = max(min, a + b ln n) for n options, instead of both others. */
  readonly byOptions?: { readonly a: number; readonly b: number; readonly min: number }
  /** Of schema-first rows, by type and in general; without either the state-first ones hold, but for `byOptions`. */
  readonly schemaFirst?: { readonly base?: number; readonly byType: ByType }
}

/** A temperature for all answers, or one for each type, instead of what a checkpoint says. */
export interface TemperatureOptions {
  readonly temperature?: number | undefined
  readonly temperatureByType?: ByType | undefined
}

/** The T of one answer with `options` options. */
export function temperatureOf(
  t: Temperatures,
  type: AnswerType,
  options: number,
  order: Order = 'state_first',
): number {
  const stateFirst = t.byType[type] ?? t.base
  if (order === 'schema_first') return t.schemaFirst?.byType[type] ?? t.schemaFirst?.base ?? stateFirst
  if (t.byOptions) return Math.max(t.byOptions.min, t.byOptions.a + t.byOptions.b * Math.log(Math.max(options, 2)))
  return stateFirst
}

/**
 * The calibration with its state-first part replaced: by the map, which leaves the one value to the types it lacks, or by
 * the one value for all. Throws InputError for what is no temperature.
 */
export function withTemperatures(
  t: Temperatures,
  { temperature, temperatureByType }: TemperatureOptions,
): Temperatures {
  if (temperature === undefined && temperatureByType === undefined) return t
  const base = temperature === undefined ? t.base : temperature
  if (!isTemperature(base)) return refuseOption('temperature', base)
  const byType = readByType('temperatureByType', temperatureByType, refuseOption)
  return { base, byType, ...(t.schemaFirst && { schemaFirst: t.schemaFirst }) }
}

/** The temperature keys of decider_config.json. Throws WeightsError that names the key. */
export function readTemperatures(config: Record<string, unknown>): Temperatures {
  const { temperature_by_type: byType, temperature_by_options: byOptions } = config
  const base = readOne('temperature', config) ?? 1
  const schemaFirst = readSchemaFirst(config)
  if (byOptions === undefined) return { base, byType: readByType('temperature_by_type', byType), ...schemaFirst }
  if (byType !== undefined) refuseKey('temperature_by_options', byOptions, 'no temperature_by_type beside it')
  return { base, byType: {}, byOptions: readByOptions(byOptions), ...schemaFirst }
}

function readSchemaFirst(config: Record<string, unknown>): Pick<Temperatures, 'schemaFirst'> {
  const key = 'temperature_schema_first_by_type'
  const base = readOne('temperature_schema_first', config)
  const byType = readByType(key, config[key])
  if (base === undefined) return config[key] === undefined ? {} : { schemaFirst: { byType } }
  return { schemaFirst: { base, byType } }
}

/** A temperature that may be written as text; undefined when it is not there. */
function readOne(key: string, config: Record<string, unknown>): number | undefined {
  const given = config[key]
  if (given === undefined) return undefined
  const value = typeof given === 'string' ? readFloat(given) : given
  return isTemperature(value) ? value : refuseKey(key, given)
}

function readByType(key: string, map: unknown = {}, refuse: Refuse = refuseKey): ByType {
  if (!isObject(map)) return refuse(key, map, 'a map from choice, noul or score to a temperature')
  for (const [type, value] of Object.entries(map)) {
    if (!isAnswerType(type)) refuse(key, type, 'only the keys choice, noul and score (a "bool" field is "noul")')
    if (!isTemperature(value)) refuse(`${key}.${type}`, value)
  }
  return map as ByType
}

function readByOptions(map: unknown): NonNullable<Temperatures['byOptions']> {
  const key = 'temperature_by_options'
  if (!isObject(map)) refuseKey(key, map, 'a map of a, b and min')
  const { a, b, min = 0.05, ...others } = map as Record<string, unknown>
  if (Object.keys(others).length > 0) refuseKey(key, others, 'only the keys a, b and min')
  if (!isFiniteNumber(a)) refuseKey(`${key}.a`, a, 'a finite number')
  if (!isFiniteNumber(b)) refuseKey(`${key}.b`, b, 'a finite number')
  if (!isTemperature(min)) refuseKey(`${key}.min`, min)
  return { a, b, min }
}

const isFiniteNumber = (value: unknown): value is number => Number.isFinite(value)
const isTemperature = (value: unknown): value is number => isFiniteNumber(value) && value > 0

type Refuse = (key: string, value: unknown, expected?: string) => never
const TEMPERATURE = 'a finite number above 0'

function refuseKey(key: string, value: unknown, expected = TEMPERATURE): never {
  throw new WeightsError('format', `decider_config.json: ${key} has ${JSON.stringify(value)}, expected ${expected}`)
}

function refuseOption(key: string, value: unknown, expected = TEMPERATURE): never {
  throw new InputError(`${key}: has ${value}, expected ${expected}; leave it out for the model's own`)
}
