import { InputError } from '../../errors.ts'
import { softmax } from './answer.ts'
import type { AskOptions, Decider } from './api.ts'
import { type ImageOf, inlineImage } from './images.ts'
import { type Bin, binsOf, type Judged, type Metrics, meanMetrics, metricsOf } from './metrics.ts'
import { type AnswerType, temperatureOf, type Temperatures } from './temperature.ts'

/** A question with a known answer. */
export interface Example {
  /** Where it is from, in errors. */
  readonly where: string
  readonly context: string
  /** Shown before the context: what names it. */
  readonly image?: string
  readonly question: string
  readonly options: readonly string[]
  /** Index of the right option. */
  readonly gold: number
  readonly task: string
  readonly type: AnswerType
  /** Of a task that the model was not trained for; undefined where nobody says so. */
  readonly heldout?: boolean
}

/** What a model said of an example: a record that `calibrate` takes. */
export interface Prediction extends Pick<Example, 'gold' | 'task' | 'type' | 'heldout'> {
  /** ln p at temperature 1. */
  readonly logits: readonly number[]
}

/** The metrics of every task, and over the tasks. */
export interface Evaluation {
  readonly results: Readonly<Record<string, Metrics & { readonly heldout?: boolean }>>
  /** `tasks`: means over tasks, all alike, and by `heldout` where rows say it. `rows`: of all rows together. */
  readonly agg: {
    readonly rows: Metrics
    readonly tasks: ReturnType<typeof meanMetrics>
    readonly in_task?: ReturnType<typeof meanMetrics>
    readonly heldout?: ReturnType<typeof meanMetrics>
  }
  /** Of all rows: confidence against accuracy. */
  readonly reliability: readonly Bin[]
}

const TYPES: readonly string[] = ['choice', 'noul', 'score'] satisfies AnswerType[]

/**
 * Reads a row `{context, image?, question, options, gold, task?, type?, heldout?}`; undefined for one whose gold is -1, which
 * is unknown. Throws InputError that begins with `where`.
 */
export function readExample(text: string, where: string): Example | undefined {
  const expected = '{"context": text, "question": text, "options": [text, ...], "gold": index}'
  let row: Record<string, unknown>
  try {
    row = JSON.parse(text)
  } catch (cause) {
    throw new InputError(`${where}: is not JSON, expected ${expected}`, 'input', { cause })
  }
  const { context, question, options, gold, task = 'all', type = 'choice', heldout } = row ?? {}
  const image = (row?.image ?? undefined) as string | undefined // or something else, which is refused next
  const texts = [context, question, task, image ?? ''].every((value) => typeof value === 'string')
  if (!texts || !Array.isArray(options) || options.some((option) => typeof option !== 'string'))
    throw new InputError(`${where}: has other members, expected ${expected}`)
  if (!TYPES.includes(type as string))
    throw new InputError(`${where}: type has ${JSON.stringify(type)}, expected choice, noul or score`)
  if (gold === -1) return undefined
  if (!Number.isInteger(gold) || !(Number(gold) >= 0 && Number(gold) < options.length))
    throw new InputError(`${where}: gold has ${JSON.stringify(gold)}, expected 0 to ${options.length - 1}`)
  return {
    where,
    context,
    ...(image !== undefined && { image }),
    question,
    options,
    gold,
    task,
    type,
    ...(heldout !== undefined && { heldout: heldout === true }),
  } as Example
}

export interface PredictOptions extends Pick<AskOptions, 'signal' | 'maxPixels'> {
  /** Default: `inlineImage`. */
  readonly imageOf?: ImageOf
}

/**
 * Asks a batch, each question in a row of its own; all rows are scored together. Throws InputError that begins with the
 * `where` of an example that cannot be asked.
 */
export async function predict(
  decider: Pick<Decider, 'decideBatch'>,
  examples: readonly Example[],
  options: PredictOptions = {},
): Promise<Prediction[]> {
  try {
    return await predictAll(decider, examples, options)
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    if (examples.length === 1)
      throw new InputError(`${examples[0]!.where}: ${error.message}`, 'input', { cause: error })
    for (const example of examples) await predict(decider, [example], options) // whose fault it is
    throw error
  }
}

async function predictAll(
  decider: Pick<Decider, 'decideBatch'>,
  examples: readonly Example[],
  { imageOf = inlineImage, ...options }: PredictOptions,
): Promise<Prediction[]> {
  const items = examples.map(({ context, image, question, options }) => ({
    context,
    questions: [{ question, options }],
    image: image === undefined ? undefined : imageOf(image),
  }))
  const answered = await decider.decideBatch(items, { temperature: 1, ...options })
  return examples.map(({ gold, task, type, heldout }, i) => {
    const { probsList } = answered[i]!.answers[0]!
    const logits = probsList.map((p) => Math.log(Math.max(p, Number.MIN_VALUE))) // JSON has no -Infinity
    return { task, type, gold, logits, ...(heldout !== undefined && { heldout }) }
  })
}

/** The probabilities of a prediction at the temperatures of a model, or at one for all. */
export const judge = ({ logits, type, gold }: Prediction, temperatures: Temperatures | number): Judged => {
  const t = typeof temperatures === 'number' ? temperatures : temperatureOf(temperatures, type, logits.length)
  return { p: softmax(logits, t), gold }
}

/** Of one prediction or more. */
export function evaluation(predictions: readonly Prediction[], temperatures: Temperatures | number): Evaluation {
  const tasks = new Map<string, { judged: Judged[]; heldout: boolean | undefined }>()
  const all: Judged[] = []
  for (const prediction of predictions) {
    const { task, heldout } = prediction
    const judged = judge(prediction, temperatures)
    all.push(judged)
    const known = tasks.get(task)
    if (known) known.judged.push(judged)
    else tasks.set(task, { judged: [judged], heldout })
  }
  const results = [...tasks].map(([task, { judged, heldout }]) => {
    return [task, { ...metricsOf(judged), ...(heldout !== undefined && { heldout }) }] as const
  })
  const means = (heldout: boolean) => {
    const some = results.filter(([, metrics]) => metrics.heldout === heldout).map(([, metrics]) => metrics)
    return some.length > 0 ? meanMetrics(some) : undefined
  }
  const [inTask, heldout] = [means(false), means(true)]
  return {
    results: Object.fromEntries(results),
    agg: {
      rows: metricsOf(all),
      tasks: meanMetrics(results.map(([, metrics]) => metrics)),
      ...(inTask && { in_task: inTask }),
      ...(heldout && { heldout }),
    },
    reliability: binsOf(all),
  }
}
