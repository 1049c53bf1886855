import { InputError } from '../../errors.ts'
import { languageId } from '../../text/languages.ts'

/**
 * How to say something. What is left out has upstream's default; null is the learned vector of a model that was not
 * told, "unconditional". A model ignores what it has no conditioner for.
 */
export interface Conditions {
  /** One of espeak-ng's codes that Zonos knows; default en-us. */
  readonly language?: string | null | undefined
  /** The voice, 128 numbers; default null, which is another voice with each seed. */
  readonly speaker?: ArrayLike<number> | null | undefined
  /** Shares of the eight emotions in this order, or by name; divided by their sum. */
  readonly emotion?: Emotions | ArrayLike<number> | null | undefined
  /** Highest frequency, 0 to 24000 Hz; default 22050. */
  readonly fmax?: number | null | undefined
  /** How much the pitch varies, 0 to 400: 20 to 45 is normal, 60 to 150 expressive; default 20. */
  readonly pitchStd?: number | null | undefined
  /** Phonemes a second, 0 to 40: 10 is slow, 30 very fast; default 15. */
  readonly speakingRate?: number | null | undefined
  /** Hybrid: VQScore of each eighth of the recording, 0.5 to 0.8; default null. */
  readonly vqScore?: ArrayLike<number> | null | undefined
  /** Hybrid: -1 to 1000; default 0. */
  readonly ctcLoss?: number | null | undefined
  /** Hybrid: DNSMOS of the recording, 1 to 5; default null. */
  readonly dnsmos?: number | null | undefined
  /** Hybrid: was the speaker's recording noisy? Default false. */
  readonly speakerNoised?: boolean | null | undefined
  /** Keys that are null whatever else they are given. */
  readonly unconditional?: readonly ConditionKey[] | undefined
}

export type ConditionKey = keyof typeof names

const emotions = ['happiness', 'sadness', 'disgust', 'fear', 'surprise', 'anger', 'other', 'neutral'] as const
export type Emotions = Readonly<Partial<Record<(typeof emotions)[number], number>>>

/** What the conditioners of a checkpoint take, by their names there. */
export type ConditionValues = Readonly<Record<string, ArrayLike<number> | null>>

/** The names that checkpoints give them. */
const names = {
  language: 'language_id',
  speaker: 'speaker',
  emotion: 'emotion',
  fmax: 'fmax',
  pitchStd: 'pitch_std',
  speakingRate: 'speaking_rate',
  vqScore: 'vqscore_8',
  ctcLoss: 'ctc_loss',
  dnsmos: 'dnsmos_ovrl',
  speakerNoised: 'speaker_noised',
} as const

/** Upstream's make_cond_dict, whose vqscore_8 and dnsmos_ovrl are unconditional by default. */
const defaults = {
  language: 'en-us',
  speaker: null,
  emotion: [0.3077, 0.0256, 0.0256, 0.0256, 0.0256, 0.0256, 0.2564, 0.3077],
  fmax: 22050,
  pitchStd: 20,
  speakingRate: 15,
  vqScore: null,
  ctcLoss: 0,
  dnsmos: null,
  speakerNoised: false,
} as const satisfies Conditions

/** Numbers for the conditioners; ranges and lengths are the model's to check. InputError for a key or value of no sense. */
export function conditionValues(conditions: Conditions = {}): ConditionValues {
  const { unconditional = [], ...given } = conditions
  for (const key of [...Object.keys(given), ...unconditional])
    if (!Object.hasOwn(names, key)) throw wrong(key, 'not a condition', Object.keys(names).join(', '))
  return Object.fromEntries(
    (Object.keys(names) as ConditionKey[]).map((key) => {
      const value = given[key] === undefined ? defaults[key] : given[key]
      return [names[key], value === null || unconditional.includes(key) ? null : numbersOf(key, value)]
    }),
  )
}

function numbersOf(key: ConditionKey, value: NonNullable<Conditions[ConditionKey]>): ArrayLike<number> {
  if (key === 'language') {
    if (typeof value !== 'string') throw wrong(key, value, 'a code such as en-us')
    return [languageId(value)]
  }
  if (key === 'speakerNoised') {
    if (typeof value !== 'boolean') throw wrong(key, value, 'true or false')
    return [Number(value)]
  }
  if (key === 'emotion') return sharesOf(value as Emotions | ArrayLike<number>)
  const numbers = typeof value === 'number' ? [value] : Array.from(value as ArrayLike<number>)
  const bad = numbers.find((n) => !Number.isFinite(n))
  if (numbers.length === 0 || bad !== undefined) throw wrong(key, bad ?? value, 'finite numbers')
  return numbers
}

function sharesOf(value: Emotions | ArrayLike<number>): number[] {
  if (typeof value !== 'object') throw wrong('emotion', value, 'eight shares, or shares by name')
  const named = !('length' in value)
  const other = named && Object.keys(value).find((name) => !(emotions as readonly string[]).includes(name))
  if (other) throw wrong('emotion', other, emotions.join(', '))
  const weights = named ? emotions.map((name) => (value as Emotions)[name] ?? 0) : Array.from(value)
  const sum = weights.reduce((a, b) => a + b, 0)
  if (!(sum > 0 && Number.isFinite(sum) && weights.every((w) => w >= 0)))
    throw wrong('emotion', weights.join(', '), 'shares that are not negative and not all zero')
  return weights.map((w) => w / sum)
}

const wrong = (key: string, value: unknown, expected: string): InputError =>
  new InputError(
    `conditions: ${key} is ${typeof value === 'string' ? value : JSON.stringify(value)}, expected ${expected}`,
  )
