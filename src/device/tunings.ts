import type { LinearRule } from '../graph/target.ts'
import { defaultPlace, type Place } from './place.ts'

/** What was measured on an adapter, for this version of the kernels. */
export interface Tuning {
  /** The day of the last measurement, as 2026-11-30. */
  readonly date: string
  readonly rules: readonly LinearRule[]
}

/** Rules by adapter, kept across processes where the host has a place for them. */
export interface Tunings {
  /** Undefined where nothing was measured, or by another version: its kernels are others. */
  of(adapter: string): Promise<Tuning | undefined>
  /** Adds a rule; it replaces one of the same size. Rejects where nothing can be kept. */
  keep(adapter: string, rule: LinearRule): Promise<void>
  /** All of this version, by adapter. */
  all(): Promise<Readonly<Record<string, Tuning>>>
  forget(): Promise<void>
}

/** Of the package, which is part of the key. */
export const VERSION = '0.1.0'

interface Stored {
  readonly version: string
  readonly tunings: Readonly<Record<string, Tuning>>
}

/** Something else in the place, or something damaged, is as good as nothing; `onWarning` hears of it. */
export function keptTunings({ place = defaultPlace('tuning'), onWarning = () => {} }: TuningsOptions = {}): Tunings {
  const none: Stored = { version: VERSION, tunings: {} }
  const load = async (): Promise<Stored> => {
    try {
      const text = await place.read()
      if (text === undefined) return none
      const stored = readStored(JSON.parse(text))
      return stored.version === VERSION ? stored : none
    } catch (error) {
      onWarning(`tuning: what is kept cannot be used (${(error as Error).message}); run tune again`)
      return none
    }
  }
  const store = (tunings: Stored['tunings']): Promise<void> =>
    place.write(JSON.stringify({ version: VERSION, tunings }, undefined, 1))

  return {
    of: async (adapter) => {
      const { tunings } = await load()
      return Object.hasOwn(tunings, adapter) ? tunings[adapter] : undefined
    },
    async keep(adapter, rule) {
      const { tunings } = await load()
      const same = ({ on, N, K }: LinearRule): boolean => on === rule.on && N === rule.N && K === rule.K
      const others = Object.hasOwn(tunings, adapter) ? tunings[adapter]!.rules.filter((r) => !same(r)) : []
      const date = new Date().toISOString().slice(0, 10)
      await store({ ...tunings, [adapter]: { date, rules: [...others, rule] } })
    },
    all: async () => (await load()).tunings,
    forget: () => store({}),
  }
}

export interface TuningsOptions {
  readonly place?: Place | undefined
  readonly onWarning?: ((message: string) => void) | undefined
}

type Json = Readonly<Record<string, unknown>>
const isObject = (x: unknown): x is Json => typeof x === 'object' && x !== null && !Array.isArray(x)
const isSize = (x: unknown): x is number => Number.isInteger(x) && (x as number) > 0
const isConstants = (x: unknown): boolean =>
  isObject(x) && Object.entries(x).every(([name, n]) => /^[A-Z_]+$/.test(name) && (n === 0 || isSize(n)))

function readStored(json: unknown): Stored {
  if (!isObject(json) || typeof json.version !== 'string' || !isObject(json.tunings))
    throw new TypeError('it is not a tuning')
  if (json.version === VERSION)
    for (const [adapter, tuning] of Object.entries(json.tunings)) expectTuning(adapter, tuning)
  return json as unknown as Stored
}

function expectTuning(adapter: string, tuning: unknown): void {
  if (!isObject(tuning) || !/^\d{4}-\d\d-\d\d$/.test(String(tuning.date)) || !Array.isArray(tuning.rules))
    throw new TypeError(`${adapter}: no date and rules`)
  const wrong = tuning.rules.findIndex((rule) => !isRule(rule))
  if (wrong >= 0) throw new TypeError(`${adapter}: rule ${wrong} is none`)
}

/** The form of a rule; whether it fits a product and the device is asked of the kernels each time. */
function isRule(r: unknown): boolean {
  if (!isObject(r) || !isObject(r.order) || !Array.isArray(r.heights) || r.heights.length === 0) return false
  if (!['matrix', 'f16', 'f32'].includes(r.on as string)) return false
  if (!['linear', 'linear_tiled', 'linear_matrix'].includes(r.variant as string)) return false
  if (![r.N, r.K, r.order.SK, r.order.BK].every(isSize) || !isConstants(r.order)) return false
  const heights = r.heights.map((h) => (isObject(h) && isConstants(h.tile) ? h.upTo : null))
  const below = heights.slice(0, -1)
  return below.every((n, i) => isSize(n) && !(i > 0 && n <= (below[i - 1] as number))) && heights.at(-1) === undefined
}
