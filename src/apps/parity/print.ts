import type { SpeechDrift, SpeechParity } from './speech.ts'

const percent = (share: number): string => `${(100 * share).toFixed(1)} %`
const small = (value: number): string => value.toExponential(1)

/** A column for each device, and what is broken below. */
export function printParity({ reference, frames, seconds, drifts }: SpeechParity): string {
  const rows: readonly (readonly [string, (d: SpeechDrift) => string])[] = [
    ['', ({ precision }) => precision],
    ['logits: least cosine', ({ logits }) => logits.minCosine.toFixed(8)],
    ['logits: mean cosine', ({ logits }) => logits.meanCosine.toFixed(8)],
    ['logits: largest difference', ({ logits }) => small(logits.largestDifference)],
    ['same first choice, all codebooks', ({ logits }) => percent(mean(logits.agreement))],
    ['same first choice, each', ({ logits }) => logits.agreement.map((a) => Math.round(100 * a)).join(' ')],
    ['samples: SI-SDR', ({ wave }) => `${wave.siSdrDb.toFixed(1)} dB`],
    ['samples: largest difference', ({ wave }) => small(wave.largestDifference)],
  ]
  const cells = rows.map(([name, of]) => [name, ...drifts.map(of)])
  const widths = cells[0]!.map((_, i) => Math.max(...cells.map((line) => line[i]!.length)))
  const table = cells.map((line) =>
    line
      .map((cell, i) => cell.padEnd(widths[i]!))
      .join('  ')
      .trimEnd(),
  )
  const devices = drifts.map(({ device }) => `device: ${device}`)
  const head = [`reference: ${reference}`, ...devices, `${frames} frames of codes, ${seconds.toFixed(2)} s`]
  return `${[...head, ...table].join('\n')}\n`
}

const mean = (values: readonly number[]): number => values.reduce((sum, v) => sum + v, 0) / values.length
