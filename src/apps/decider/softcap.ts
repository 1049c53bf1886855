import { WeightsError } from '../../errors.ts'
import { isObject, type JsonValue, member } from './json.ts'

const KEY = 'final_logit_softcapping'

/** cap * tanh(x / cap), as models do that were trained with it; without a cap the logits as they are. */
export const softcap = (logits: Float32Array, cap?: number): Float32Array =>
  cap === undefined ? logits : logits.map((x) => cap * Math.tanh(x / cap))

/** The cap of a config.json, at its top or in its text_config; undefined where it has none. */
export function readSoftcap(config: unknown): number | undefined {
  if (!isObject(config)) return undefined
  const text = member(config, 'text_config')
  const cap = member(config, KEY) ?? (isObject(text) ? member(text, KEY) : undefined) ?? undefined
  if (cap === undefined || isCap(cap)) return cap
  throw new WeightsError('format', `config.json: ${KEY} has ${JSON.stringify(cap)}, expected a finite number above 0`)
}

const isCap = (value: JsonValue): value is number => Number.isFinite(value) && Number(value) > 0
