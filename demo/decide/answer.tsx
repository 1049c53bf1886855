import type { Answer } from '../../src/index.ts'
import { percent } from '../ui/format.ts'
import { top } from './sentence.ts'

/** Labels with their probabilities, in the order of the options. */
export function rowsOf(answer: Answer): readonly (readonly [string, number])[] {
  if (answer.type === 'noul') return Object.entries({ no: 1 - answer.noul, yes: answer.noul })
  const rows = Object.entries(answer.probabilities)
  return answer.type === 'choice' ? rows : rows.map(([level, p]) => [answer.legend[level]!, p])
}

/** An answer as bars; without one, the place where it will be. */
export function AnswerBars({ label, answer }: { label: string; answer: Answer | undefined }) {
  if (!answer) return <div class="bars pending" aria-hidden="true" />
  const rows = rowsOf(answer)
  const best = Math.max(...rows.map(([, p]) => p))
  return (
    <>
      <ol class="bars" aria-label={`Answer: ${label}`}>
        {rows.map(([name, p]) => (
          <li key={name} class={p === best ? 'best' : undefined}>
            <span>{name}</span>
            <output>{percent(p)}</output>
            <i style={{ width: `${100 * p}%` }} />
          </li>
        ))}
      </ol>
      <p class="meta">{summary(answer)}</p>
    </>
  )
}

function summary(answer: Answer) {
  if (answer.type === 'noul') return <span>confidence {percent(Math.abs(2 * answer.noul - 1))}</span>
  return (
    <>
      {answer.type === 'score' && (
        <span>
          level {answer.score} of {Object.keys(answer.legend).length - 1}, most likely {top(answer)}
        </span>
      )}
      <span>confidence {percent(answer.confidence)}</span>
      <span>certainty {percent(answer.certainty)}</span>
    </>
  )
}
