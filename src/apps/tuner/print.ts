import type { Tuning } from '../../device/tunings.ts'
import type { LinearRule } from '../../graph/target.ts'
import { meanRatio } from '../../kernels/tune/choose.ts'
import type { TuneProgress } from '../../kernels/tune/tune.ts'
import type { Tuned, TunedHeight } from '../../kernels/tune/tune_product.ts'

/** What was found for a product: the rule, then a line for each height with the built-in plan beside it. */
export function printTuned({ product, rule, builtin, heights, tried, failed }: Tuned): string {
  const { name, N, K } = product
  const ratio = meanRatio(
    heights.map(({ ms }) => ms),
    heights.map(({ builtinMs }) => builtinMs),
  )
  const found = builtin ? 'the built-in plan stays' : `${times(ratio)} as fast as the built-in plan`
  const rows = heights.map((h) => {
    const tflops = (2 * h.rows * N * K) / h.ms / 1e9
    const other =
      h.plan === h.builtinPlan ? '' : `  built-in ${short(h.builtinMs)} ms, ${times(ratioOf(h))}  ${h.builtinPlan}`
    return [
      `${h.rows} rows`.padStart(11),
      `${short(h.ms)} ms`.padStart(10),
      `${short(tflops)} TFLOP/s`.padStart(14),
      ` ${h.plan}${other}`,
    ].join(' ')
  })
  const skipped = failed.map(({ plan, reason }) => `  skipped ${plan}: ${reason}`)
  const head = `${name}, ${N} x ${K}: ${planOf(rule)}, ${found} (${tried} plans tried)`
  return `${[head, ...rows, ...skipped].join('\n')}\n`
}

const ratioOf = ({ ms, builtinMs }: TunedHeight): number => builtinMs / ms
const times = (ratio: number): string => `${ratio.toFixed(2)}x`
const short = (value: number): string => value.toPrecision(3)

const constants = (of: Readonly<Record<string, number>>): string =>
  Object.entries(of)
    .map(([key, value]) => `${key}${value}`)
    .join(' ')
const planOf = ({ variant, order }: LinearRule): string => `${variant} ${constants(order)}`

export const printProgress = ({ product, index, of, phase, done, total }: TuneProgress): string =>
  `${index + 1} of ${of}: ${product.name}, ${phase} ${done} of ${total} plans`

/** What is kept, for all adapters. */
export function printTunings(tunings: Readonly<Record<string, Tuning>>): string {
  const adapters = Object.entries(tunings).map(([adapter, { date, rules }]) => {
    const lines = rules.map((rule) => {
      const tiles = rule.heights.map(({ upTo, tile }) => {
        return `${upTo === undefined ? 'above' : `to ${upTo} rows`} ${constants(tile)}`
      })
      return `  ${rule.on} ${rule.N} x ${rule.K}: ${planOf(rule)}; ${tiles.join(', ')}\n`
    })
    return `${adapter}: tuned ${date}\n${lines.join('')}`
  })
  return adapters.join('') || 'nothing is tuned here\n'
}
