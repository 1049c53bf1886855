import type { Decider } from '../apps/decider/api.ts'
import { type AnswerType, temperatureOf, type Temperatures } from '../apps/decider/temperature.ts'

const DESCRIPTION = 'decider: one-pass typed decisions with calibrated probabilities'
const RELEASE_DATE = '2026-09-17' // the original's, for a model that has none
const TYPES: readonly AnswerType[] = ['choice', 'noul', 'score']

/** The original's `GET /v1/models`. */
export const modelsOf = ({ model, config }: Decider): object => ({
  models: [{ name: model, description: DESCRIPTION, release_date: config.releaseDate ?? RELEASE_DATE }],
})

/** The original's `GET /health`, and beside it what the device reports of itself. */
export function healthOf(decider: Decider, ready: boolean, model: string): object {
  const { temperatures, layout, schemaFirstTrained } = decider.config
  const { report } = decider.device
  const { name, why, dtype, features, disabled, line } = report
  return {
    ok: ready,
    model,
    device: report.kind,
    layout,
    temperature: temperatures.base,
    temperature_by_type: byType(temperatures, 'state_first'),
    ...(schemaFirstTrained && { temperature_schema_first_by_type: byType(temperatures, 'schema_first') }),
    device_report: { name, why, dtype, features, disabled, line },
  }
}

/** T of each type; of a model whose T goes by the number of options, how it does. */
function byType(t: Temperatures, order: 'state_first' | 'schema_first'): Record<string, number | string> {
  const { byOptions } = t
  const spelled = byOptions && `max(${byOptions.min}, ${byOptions.a} + ${byOptions.b} ln n_options)`
  const of = (type: AnswerType) => (order === 'state_first' && spelled) || temperatureOf(t, type, 2, order)
  return Object.fromEntries(TYPES.map((type) => [type, of(type)]))
}
