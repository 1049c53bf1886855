import { round } from './python.ts'
import type { AnswerType } from './temperature.ts'

/** Logits of a question with a known answer, read at temperature 1. `ln p` will do: a constant makes no difference. */
export interface ChoiceRecord {
  readonly type: AnswerType
  readonly logits: readonly number[]
  /** Index of the right option. */
  readonly gold: number
}

/** A score asked level by level: the logits of no and yes for each level. */
export interface LevelsRecord {
  readonly type: 'score'
  readonly levels: readonly (readonly [no: number, yes: number])[]
  readonly gold: number
}

export type CalibrationRecord = ChoiceRecord | LevelsRecord

/** A temperature, and the mean negative log likelihood without it and with it. */
export interface Fit {
  readonly temperature: number
  readonly nllAtOne: number
  readonly nll: number
}

const LEAST = 0.05
const MOST = 20
const GRID = 801
const STEPS = 40
const IMPOSSIBLE = 690 // nats, of a right answer with probability 0
const GOLDEN = (Math.sqrt(5) - 1) / 2

/** Mean negative log likelihood of the right answers at a temperature. */
export const nllAt = (records: readonly CalibrationRecord[], temperature: number): number =>
  records.reduce((sum, record) => sum + lossOf(record, temperature), 0) / records.length

/**
 * The temperature with the least NLL, as the original's `calibrate` finds it: the best of 801 values spread evenly over
 * ln 0.05 to ln 20, then 40 steps of golden-section search between its neighbours. Needs a record.
 */
export function fitTemperature(records: readonly CalibrationRecord[]): Fit {
  const at = (i: number): number => Math.log(LEAST) + (Math.log(MOST / LEAST) * i) / (GRID - 1)
  const loss = (ln: number): number => nllAt(records, Math.exp(ln))
  let best = 0
  let least = Infinity
  for (let i = 0; i < GRID; i++) {
    const found = loss(at(i))
    if (found < least) [best, least] = [i, found]
  }
  const ln = goldenSection(loss, at(Math.max(0, best - 1)), at(Math.min(GRID - 1, best + 1)))
  const temperature = Math.exp(ln)
  return { temperature, nllAtOne: nllAt(records, 1), nll: nllAt(records, temperature) }
}

/** The middle of the interval that is left after some steps, each of which keeps the better of two inner points. */
function goldenSection(loss: (x: number) => number, from: number, to: number): number {
  let [low, high] = [from, to]
  let [a, b] = [high - GOLDEN * (high - low), low + GOLDEN * (high - low)]
  let [lossA, lossB] = [loss(a), loss(b)]
  for (let step = 0; step < STEPS; step++) {
    if (lossA < lossB) {
      ;[high, b, lossB] = [b, a, lossA]
      a = high - GOLDEN * (high - low)
      lossA = loss(a)
    } else {
      ;[low, a, lossA] = [a, b, lossB]
      b = low + GOLDEN * (high - low)
      lossB = loss(b)
    }
  }
  return (low + high) / 2
}

function lossOf(record: CalibrationRecord, temperature: number): number {
  const loss =
    'levels' in record
      ? -logShare(
          record.levels.map(([no, yes]) => -softplus((no - yes) / temperature)), // ln P(yes)
          record.gold,
          1,
        )
      : -logShare(record.logits, record.gold, temperature)
  return Number.isNaN(loss) ? IMPOSSIBLE : Math.min(loss, IMPOSSIBLE) // NaN: no level is possible at all
}

/** One value of the logarithm of softmax(x / temperature). */
function logShare(x: readonly number[], at: number, temperature: number): number {
  const top = Math.max(...x)
  let total = 0
  for (const value of x) total += Math.exp((value - top) / temperature)
  return (x[at]! - top) / temperature - Math.log(total)
}

const softplus = (x: number): number => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)))

/** The temperatures of a model, by answer type and for all records together. */
export interface Calibration {
  readonly byType: Readonly<Partial<Record<AnswerType, Fit>>>
  readonly pooled: Fit
  readonly rows: Readonly<Partial<Record<AnswerType, number>>>
}

/** What the original's `calibrate` prints; the first two are keys of decider_config.json. */
export interface CalibrationReport {
  readonly temperature_by_type: Readonly<Partial<Record<AnswerType, number>>>
  readonly temperature: number
  readonly rows: Calibration['rows']
  readonly nll: Readonly<Partial<Record<AnswerType, { readonly 'T=1': number; readonly fitted: number }>>>
}

/** A calibration in three decimals. */
export function calibrationReport({ byType, pooled, rows }: Calibration): CalibrationReport {
  const fits = Object.entries(byType)
  return {
    temperature_by_type: Object.fromEntries(fits.map(([type, fit]) => [type, round(fit.temperature, 3)])),
    temperature: round(pooled.temperature, 3),
    rows,
    nll: Object.fromEntries(
      fits.map(([type, fit]) => [type, { 'T=1': round(fit.nllAtOne, 3), fitted: round(fit.nll, 3) }]),
    ),
  }
}

/** Fits the types that have at least `minRows` records; the others have the pooled temperature. Needs a record. */
export function calibrate(records: readonly CalibrationRecord[], minRows = 50): Calibration {
  const byType: Partial<Record<AnswerType, Fit>> = {}
  const rows: Partial<Record<AnswerType, number>> = {}
  for (const type of ['choice', 'noul', 'score'] as const) {
    const own = records.filter((record) => record.type === type)
    if (own.length > 0) rows[type] = own.length
    if (own.length > 0 && own.length >= minRows) byType[type] = fitTemperature(own)
  }
  return { byType, pooled: fitTemperature(records), rows }
}
