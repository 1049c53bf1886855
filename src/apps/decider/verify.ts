import { InputError } from '../../errors.ts'
import type { RgbImage } from '../../media/pixels.ts'
import { knownModels } from '../../weights/known_models.ts'
import { argmax } from './answer.ts'
import type { Decider, PackedQuestion } from './api.ts'
import { type ImageOf, inlineImage } from './images.ts'
import { isObject } from './json.ts'

/** What a model answered elsewhere to some requests, at a revision. */
export interface Pins {
  /** Where they are from. */
  readonly source: string
  /** `hf:owner/name@revision`. */
  readonly model: string
  readonly temperature: number
  readonly cases: readonly {
    /** Names the case where contexts do not. */
    readonly name?: string
    readonly context: string
    /** Shown before the context: pixels, or what names them. */
    readonly image?: RgbImage | string
    readonly question: PackedQuestion
    /** Probabilities of the options. */
    readonly expected: readonly number[]
  }[]
}

/** A pinned request and what the model says to it here. */
export interface Verified {
  readonly name: string
  readonly options: readonly string[]
  readonly expected: readonly number[]
  readonly got: readonly number[]
  /** The largest difference of a probability. */
  readonly drift: number
  /** Near enough: see `DRIFT` and `MARGIN`. */
  readonly ok: boolean
}

/** What ports of the original allow themselves: probabilities that far apart, */
export const DRIFT = 0.02
/** and the same choice wherever the two most probable options are that far apart. */
const MARGIN = 0.05

const SOURCE = 'decider/bench/mps.py: float16 on an M1 Pro, PyTorch 2.14.0, transformers 5.17.0'
/** What the original times and pins: one question about three messages. */
export const DEPARTMENT = {
  question: 'Which department should handle this?',
  options: ['billing', 'technical', 'sales'],
}
export const CONTEXTS = [
  'My card was charged twice for the same purchase.',
  'I cannot log in after resetting my password.',
  'I would like pricing for fifty licenses.',
]
const departments = (name: string, temperature: number, expected: readonly (readonly number[])[]): Pins => ({
  source: SOURCE,
  model: `${name}@${knownModels.find((known) => known.name === name)!.revision}`,
  temperature,
  cases: CONTEXTS.map((context, i) => ({ context, question: DEPARTMENT, expected: expected[i]! })),
})

/** An image of one colour, as the original's check makes it. */
function solid(rgb: readonly [number, number, number], side = 224): RgbImage {
  return { width: side, height: side, data: Uint8Array.from({ length: 3 * side ** 2 }, (_, i) => rgb[i % 3]!) }
}
const COLOURS = { red: [255, 0, 0], green: [0, 128, 0], blue: [0, 0, 255] } as const
const colours = (name: string, expected: Readonly<Record<keyof typeof COLOURS, readonly number[]>>): Pins => ({
  source: SOURCE,
  model: `${name}@${knownModels.find((known) => known.name === name)!.revision}`,
  temperature: 1,
  cases: (['red', 'green', 'blue'] as const).map((colour) => ({
    name: colour,
    context: 'Identify the dominant color in the image.',
    image: solid(COLOURS[colour]),
    question: { question: 'What color is shown?', options: Object.keys(COLOURS) },
    expected: expected[colour],
  })),
})

/** What the original publishes of its models. */
export const publishedPins: readonly Pins[] = [
  departments('hf:Mapika/decider-0.8b', 1.03, [
    [0.9908191561698914, 0.008331239223480225, 0.0008495416841469705],
    [0.0057962816208601, 0.992090106010437, 0.002113653812557459],
    [0.3784691095352173, 0.011208995245397091, 0.6103218197822571],
  ]),
  departments('hf:Mapika/decider-2b', 1.3, [
    [0.9854187965393066, 0.007093454711139202, 0.007487677503377199],
    [0.003030668944120407, 0.9943140745162964, 0.002655337331816554],
    [0.36381006240844727, 0.01134848315268755, 0.6248414516448975],
  ]),
  colours('hf:Mapika/decider-2b-vision', {
    red: [0.9997536540031433, 0.00013710305211134255, 0.00010930807911790907],
    green: [0.00019713766232598573, 0.9996418952941895, 0.00016089907148852944],
    blue: [0.0002715098671615124, 0.0003028911305591464, 0.9994256496429443],
  }),
]

/** The published pins of `hf:owner/name`, with the pinned revision or none. Throws InputError that names those there are. */
export function pinsOf(model: string): Pins {
  const found = publishedPins.find((pins) => pins.model === model || pins.model.startsWith(`${model}@`))
  if (found) return found
  const known = publishedPins.map((pins) => pins.model).join(' or ')
  throw new InputError(`verify: nothing is pinned for ${model}, expected ${known}; name a file of pins`)
}

/** Reads pins from JSON. Throws InputError. */
export function readPins(json: unknown): Pins {
  const isNamed = (text: unknown) => text === undefined || typeof text === 'string'
  const isNumbers = (p: unknown) => Array.isArray(p) && p.every((x) => typeof x === 'number')
  const pins = json as Pins
  const ok =
    isObject(json) &&
    typeof pins.source === 'string' &&
    typeof pins.model === 'string' &&
    typeof pins.temperature === 'number' &&
    Array.isArray(pins.cases) &&
    pins.cases.length > 0 &&
    pins.cases.every(
      (c) =>
        typeof c?.context === 'string' &&
        isNamed(c.name) &&
        isNamed(c.image) &&
        typeof c.question?.question === 'string' &&
        isNumbers(c.expected) &&
        c.question.options?.length === c.expected.length,
    )
  if (ok) return pins
  throw new InputError(
    'pins: has other members, expected {source, model, temperature, cases: [{name?, context, image?, question: {question, options}, expected: [p, ...]}]}',
  )
}

/** Asks what is pinned. */
export async function verify(
  decider: Pick<Decider, 'decideBatch'>,
  { temperature, cases }: Pins,
  { imageOf = inlineImage, signal }: { readonly imageOf?: ImageOf; readonly signal?: AbortSignal } = {},
): Promise<Verified[]> {
  const items = cases.map(({ context, image, question }) => ({
    context,
    image: typeof image === 'string' ? imageOf(image) : image,
    questions: [question],
  }))
  const answered = await decider.decideBatch(items, { temperature, signal })
  return cases.map(({ context, name = context, question, expected }, i) => {
    const got = answered[i]!.answers[0]!.probsList
    const drift = Math.max(...expected.map((p, k) => Math.abs(p - got[k]!)))
    const [first, second] = [...expected].sort((a, b) => b - a) as [number, number]
    const ok = drift <= DRIFT && (first - second < MARGIN || argmax(expected) === argmax(got))
    return { name, options: question.options, expected, got, drift, ok }
  })
}

/** A block for each request, and the largest drift. */
export function printVerified(verified: readonly Verified[]): string {
  const blocks = verified.map(({ name, options, expected, got, drift, ok }) => {
    const width = Math.max(...options.map(({ length }) => length))
    const rows = options.map((option, k) => {
      const [e, g] = [expected[k]!, got[k]!]
      const sign = g < e ? '-' : '+'
      return `  ${option.padEnd(width)}  expected ${e.toFixed(6)}  got ${g.toFixed(6)}  ${sign}${Math.abs(g - e).toFixed(6)}`
    })
    return [`${name}: ${ok ? 'ok' : 'DIFFERENT'}, drift ${drift.toFixed(6)}`, ...rows].join('\n')
  })
  const worst = Math.max(...verified.map(({ drift }) => drift))
  return `${blocks.join('\n')}\nlargest drift: ${worst.toFixed(6)}, allowed: ${DRIFT}\n`
}
