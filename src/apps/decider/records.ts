import { InputError } from '../../errors.ts'
import type { CalibrationRecord } from './calibrate.ts'
import type { AnswerType } from './temperature.ts'

const EXPECTED =
  '{"type", "logits" or "probs": [...], "gold"} or {"type": "score", "level_logits" or "level_probs": [[no, yes], ...], "gold"}'
const TYPES: readonly string[] = ['choice', 'noul', 'score'] satisfies AnswerType[]

/** Reads a record of the original's `calibrate`, read at temperature 1. Throws InputError that begins with `where`. */
export function readRecord(text: string, where: string): CalibrationRecord {
  let record: Record<string, unknown>
  try {
    record = JSON.parse(text)
  } catch (cause) {
    throw new InputError(`${where}: is not JSON, expected ${EXPECTED}`, 'input', { cause })
  }
  const { type, gold } = record ?? {}
  const refuse = (what: string): never => {
    throw new InputError(`${where}: ${what}, expected ${EXPECTED}`)
  }
  if (!TYPES.includes(type as string)) return refuse(`type has ${JSON.stringify(type)}`)
  const { logits = logsOf(record.probs), level_logits: levels = listOf(record.level_probs)?.map(logsOf) } = record
  const isPair = (pair: unknown) => isNumbers(pair) && pair.length === 2
  const ofLevels = Array.isArray(levels) && levels.every(isPair)
  if (!ofLevels && !isNumbers(logits)) return refuse('has no numbers')
  const count = ofLevels ? levels.length : (logits as number[]).length
  if (count < 2 || !Number.isInteger(gold) || !(Number(gold) >= 0 && Number(gold) < count))
    return refuse(`gold has ${JSON.stringify(gold)} of ${count}`)
  if (ofLevels && type !== 'score') return refuse(`levels of type ${type}`)
  return (ofLevels ? { type, levels, gold } : { type, logits, gold }) as CalibrationRecord
}

const listOf = (value: unknown): unknown[] | undefined => (Array.isArray(value) ? value : undefined)
const isNumbers = (value: unknown): value is number[] =>
  Array.isArray(value) && value.every((x) => typeof x === 'number' && x < Number.POSITIVE_INFINITY) // log 0 may be
const isDistribution = (p: unknown): p is number[] => isNumbers(p) && p.every((x) => x >= 0) && p.some((x) => x > 0)
const logsOf = (p: unknown): number[] | undefined => (isDistribution(p) ? p.map(Math.log) : undefined)
