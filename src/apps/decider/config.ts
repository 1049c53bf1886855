import { WeightsError } from '../../errors.ts'
import { isObject } from './json.ts'
import { readTemperatures, type Temperatures } from './temperature.ts'

/** What decider_config.json says about a model. */
export interface DeciderConfig {
  /** `decider-` and the version; `decider-dev` for a model without one. */
  readonly name: string
  readonly temperatures: Temperatures
  /** false without decider_config.json: probabilities are then the model's own. */
  readonly calibrated: boolean
  /** A score asks one yes-or-no row per level. */
  readonly isolatedLevels: boolean
  /** "None of the above" is shown to the model in a neutral spelling. */
  readonly neutralizeNone: boolean
  /** Options per question, the model's own limit (the label table may be shorter). */
  readonly maxOptions: number
  /** Tokens of the state in one row, `Context:` included. */
  readonly maxStateTokens: number
}

/**
 * Reads decider_config.json; without the file (undefined) the original's defaults hold.
 * Throws WeightsError: `format` for a damaged file, `unsupported` for the chat layout.
 */
export function parseConfig(text: string | undefined): DeciderConfig {
  const config = text === undefined ? {} : parseObject(text)
  checkLayout(config)
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
  return {
    name: `decider-${version}`,
    calibrated: text !== undefined,
    temperatures: readTemperatures(config),
    isolatedLevels: flag('isolated_levels', false),
    neutralizeNone: flag('neutralize_none', true),
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
function checkLayout(config: Record<string, unknown>): void {
  const chat = read(config, 'chat_template', false, isBoolean, 'true or false')
  const layout = config.layout ?? (chat ? 'chat' : 'plain')
  if (layout === 'plain' && !chat) return
  if (layout === 'chat')
    throw new WeightsError(
      'unsupported',
      'decider_config.json: layout is chat, expected plain; chat models are not supported yet, use a plain Decider model',
    )
  const found = layout === 'plain' ? 'plain with chat_template true' : JSON.stringify(layout)
  throw new WeightsError('format', `decider_config.json: layout is ${found}, expected plain or chat`)
}

const isBoolean = (value: unknown): value is boolean => typeof value === 'boolean'
const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''

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
