import type { Answer } from '../../src/index.ts'
import type { Verdict } from '../engine/engine.ts'

/** What the answers say, in words to be read aloud; a short sentence for each. */
export function sentences(questions: unknown, { answers }: Verdict): string {
  const asked = questions as { readonly [name: string]: { readonly instructions?: unknown } }
  return Object.entries(answers)
    .map(([name, answer]) => {
      const question = asked[name]?.instructions
      return `${typeof question === 'string' && question ? question : `${name}?`} ${verdict(answer)}`
    })
    .join(' ')
}

function verdict(answer: Answer): string {
  if (answer.type === 'noul') return answer.noul >= 0.5 ? 'Yes.' : 'No.'
  return `${capital(top(answer) ?? 'undecided')}.`
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

/** The most probable option or level. */
export function top(answer: Exclude<Answer, { type: 'noul' }>): string | null {
  if (answer.type === 'choice') return answer.choice
  const [level] = Object.entries(answer.probabilities).reduce((a, b) => (b[1] > a[1] ? b : a))
  return answer.legend[level]!
}
