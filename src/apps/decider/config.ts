import { WeightsError } from '../../errors.ts'
import { isObject } from './json.ts'
import { readTemperatures, type Temperatures } from './temperature.ts'

/** What decider_config.json says about a model. */
export interface DeciderConfig {
  /** `decider-` and the version; `decider-dev` for a model without one. */
  readonly name: string
  /** The day of its release as the config has it; undefined where it has none. */
  readonly releaseDate: string | undefined
  readonly temperatures: Temperatures
  /** false without decider_config.json: probabilities are then the model's own. */
  readonly calibrated: boolean
  readonly layout: 'plain' | 'chat'
  /** Requests whose questions were seen before are answered schema-first. */
  readonly schemaFirst: boolean
  /** The model has seen schema-first rows in training. */
  readonly schemaFirstTrained: boolean
  /** A score asks one yes-or-no row per level. */
  readonly isolatedLevels: boolean
  /** "None of the above" is shown to the model in a neutral spelling. */
  readonly neutralizeNone: boolean
  /** Does it see images? */
  readonly vision: boolean
  /** Options per question, the model's own limit (the label table may be shorter). */
  readonly maxOptions: number
  /** Tokens of the state in one row, `Context:` included. */
  readonly maxStateTokens: number
}

/**
 * Reads decider_config.json; without the file (undefined) the original's defaults hold, and a model
 * whose checkpoint has a `tower` for images sees unless the file says otherwise.
 * Throws WeightsError `format` for a damaged file.
 */
export function parseConfig(text: string | undefined, tower = false): DeciderConfig {
  const config = text === undefined ? {} : parseObject(text)
  const flag = (key: string, otherwise: boolean) => read(config, key, otherwise, isBoolean, 'true or false')
  const count = (key: string, otherwise: number, least: number) =>
    read(
      config,
      key,
      otherwise,
      (n): n is number => Number.isSafeInteger(n) && Number(n) >= least,
      `an integer from ${least}`,
    )
  const version = read<string>(config, 'version', 'dev', isText, 'a text')
  const layout = readLayout(config)
  const schemaFirst = flag('schema_first', false)
  if (schemaFirst && layout === 'chat')
    throw new WeightsError('format', 'decider_config.json: schema_first is true beside layout chat, expected plain')
  return {
    name: `decider-${version}`,
    releaseDate: read<string | undefined>(config, 'release_date', undefined, isTextOrNone, 'a text'),
    calibrated: text !== undefined,
    temperatures: readTemperatures(config),
    layout,
    schemaFirst,
    schemaFirstTrained: flag('schema_first_trained', false),
    isolatedLevels: flag('isolated_levels', false),
    neutralizeNone: flag('neutralize_none', true),
    vision: flag('vision', tower && layout === 'plain'),
    maxOptions: count('max_options', 255, 2),
    maxStateTokens: count('max_state_tokens', 32768, 1),
  }
}

function parseObject(text: string): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw new WeightsError('format', 'decider_config.json: is not JSON; download the model again', { cause })
  }
  if (!isObject(value)) throw new WeightsError('format', 'decider_config.json: has no JSON object, expected { ... }')
  return value as Record<string, unknown>
}

/** `chat_template` is the older way to say `layout`. */
function readLayout(config: Record<string, unknown>): DeciderConfig['layout'] {
  const chat = read(config, 'chat_template', false, isBoolean, 'true or false')
  const layout = config.layout ?? (chat ? 'chat' : 'plain')
  if (layout === 'chat' || (layout === 'plain' && !chat)) return layout
  const found = layout === 'plain' ? 'plain with chat_template true' : JSON.stringify(layout)
  throw new WeightsError('format', `decider_config.json: layout is ${found}, expected plain or chat`)
}

const isBoolean = (value: unknown): value is boolean => typeof value === 'boolean'
const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''
const isTextOrNone = (value: unknown): value is string | undefined => value === undefined || isText(value)

function read<T>(
  config: Record<string, unknown>,
  key: string,
  otherwise: T,
  is: (v: unknown) => v is T,
  expected: string,
): T {
  const value = config[key] ?? otherwise
  if (is(value)) return value
  throw new WeightsError('format', `decider_config.json: ${key} has ${JSON.stringify(value)}, expected ${expected}`)
}
