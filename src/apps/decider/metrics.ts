import { argmax } from './answer.ts'
import { round } from './python.ts'

/** What a model said of a question with a known answer. */
export interface Judged {
  /** Probabilities of the options, which add up to 1. */
  readonly p: readonly number[]
  /** Index of the right option. */
  readonly gold: number
}

/** How right a model is, and how well its probabilities say so. */
export interface Metrics {
  readonly n: number
  /** Share of questions whose most probable option is right. */
  readonly acc: number
  /** Mean of -ln p of the right option, p at least 1e-12. */
  readonly nll: number
  /** Mean over questions of the squared distance from certainty of the right option. */
  readonly brier: number
  /** Expected calibration error: |mean confidence - accuracy|, weighted over 15 equal bins of confidence. */
  readonly ece: number
  /** Area under the curve of errors over coverage, the most confident questions first. */
  readonly aurc: number
  /** Accuracy of the 80 % of questions with the largest confidence. */
  readonly acc_at_80: number
  readonly acc_at_50: number
  /** What guessing would reach. */
  readonly chance: number
  /** Confidence is the largest probability. */
  readonly mean_conf: number
}

/** A bin of confidence, (low, high]. */
export interface Bin {
  readonly low: number
  readonly high: number
  readonly n: number
  readonly meanConfidence: number
  readonly accuracy: number
}

const BINS = 15
const LEAST_P = 1e-12

/** The original's metrics over one set of questions. Of no questions they are NaN. */
export function metricsOf(judged: readonly Judged[]): Metrics {
  const seen = judged.map(({ p, gold }) => ({ p, gold, confidence: Math.max(...p), right: argmax(p) === gold ? 1 : 0 }))
  const ranked = [...seen].sort((a, b) => b.confidence - a.confidence).map(({ right }) => right)
  const n = judged.length
  let errors = 0
  const risks = ranked.map((right, i) => {
    errors += 1 - right
    return errors / (i + 1)
  })
  return {
    n,
    acc: mean(ranked),
    nll: mean(judged.map(({ p, gold }) => -Math.log(Math.min(1, Math.max(LEAST_P, p[gold]!))))),
    brier: mean(judged.map(({ p, gold }) => sum(p.map((x, k) => (x - (k === gold ? 1 : 0)) ** 2)))),
    ece: sum(binsOf(judged).map((bin) => (bin.n / n) * Math.abs(bin.meanConfidence - bin.accuracy))),
    aurc: mean(risks),
    acc_at_80: mean(top(ranked, 0.8)),
    acc_at_50: mean(top(ranked, 0.5)),
    chance: mean(judged.map(({ p }) => 1 / p.length)),
    mean_conf: mean(seen.map(({ confidence }) => confidence)),
  }
}

/** The bins of confidence that hold a question: what a reliability diagram shows. */
export function binsOf(judged: readonly Judged[]): Bin[] {
  const edges = Array.from({ length: BINS + 1 }, (_, i) => (i === BINS ? 1 : i * (1 / BINS)))
  return edges.slice(1).flatMap((high, i): Bin[] => {
    const low = edges[i]!
    const inside = judged.filter(({ p }) => {
      const confidence = Math.max(...p)
      // sums of rounded probabilities: a certainty may be a little over 1
      return confidence > low && (confidence <= high || i === BINS - 1)
    })
    if (inside.length === 0) return []
    const meanConfidence = mean(inside.map(({ p }) => Math.max(...p)))
    const accuracy = mean(inside.map(({ p, gold }) => (argmax(p) === gold ? 1 : 0)))
    return [{ low, high, n: inside.length, meanConfidence, accuracy }]
  })
}

/** The means of some tasks' metrics, every task counting alike. */
export function meanMetrics(tasks: readonly Metrics[]): Omit<Metrics, 'n'> & { readonly tasks: number } {
  const of = (key: keyof Metrics): number => mean(tasks.map((task) => task[key]))
  return {
    tasks: tasks.length,
    acc: of('acc'),
    nll: of('nll'),
    brier: of('brier'),
    ece: of('ece'),
    aurc: of('aurc'),
    acc_at_80: of('acc_at_80'),
    acc_at_50: of('acc_at_50'),
    chance: of('chance'),
    mean_conf: of('mean_conf'),
  }
}

/** The first share of a list, at least one element; halves are rounded as Python does. */
const top = (values: readonly number[], share: number): readonly number[] =>
  values.slice(0, Math.max(1, round(share * values.length, 0)))

const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0)
const mean = (values: readonly number[]): number => sum(values) / values.length
