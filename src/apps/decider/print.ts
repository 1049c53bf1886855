import { createColors } from 'picocolors'
import type { Answer } from './answer.ts'
import type { Answered } from './api.ts'

const BAR = 24 // columns of a probability of 1
const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉']

/** How to print: bars and colours are for terminals. */
export interface Style {
  readonly bars: boolean
  readonly color: boolean
}

/** Answers for people: per question its verdict and the probability of each option. Ends with a newline. */
export function printDecision(decision: Answered<{ readonly [name: string]: Answer }>, style: Style): string {
  const { bold, dim } = createColors(style.color)
  const blocks = Object.entries(decision.answers).map(([name, answer]) => {
    const rows = rowsOf(answer)
    const width = Math.max(...rows.map(({ label }) => label.length))
    const lines = rows.map(({ label, p, best }) => {
      const text = `${label.padEnd(width)}  ${p.toFixed(4)}${style.bars ? `  ${barOf(p)}` : ''}`
      return `  ${best ? bold(text) : text}`
    })
    return [`${bold(name)} ${dim('->')} ${verdictOf(answer)}`, ...lines].join('\n')
  })
  return `${blocks.join('\n\n')}\n`
}

/** A bar of block characters, in eighths of a column; every probability above 0 shows. */
export function barOf(p: number): string {
  const eighths = p > 0 ? Math.max(1, Math.round(p * BAR * 8)) : 0
  return '█'.repeat(eighths >> 3) + EIGHTHS[eighths & 7]
}

function verdictOf(answer: Answer): string {
  if (answer.type === 'choice') return answer.choice ?? 'no answer (below the threshold)'
  if (answer.type === 'noul') return answer.noul >= 0.5 ? 'yes' : 'no'
  return `${answer.score} (0 to ${Object.keys(answer.legend).length - 1})`
}

function rowsOf(answer: Answer): { label: string; p: number; best: boolean }[] {
  const rows =
    answer.type === 'choice'
      ? Object.entries(answer.probabilities)
      : answer.type === 'noul'
        ? Object.entries({ no: 1 - answer.noul, yes: answer.noul })
        : Object.entries(answer.probabilities).map(([level, p]): [string, number] => [
            `${level}: ${answer.legend[level]}`,
            p,
          ])
  const best = Math.max(...rows.map(([, p]) => p))
  return rows.map(([label, p]) => ({ label, p, best: p === best }))
}
