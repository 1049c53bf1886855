import type { ModelRef } from '../engine/models.ts'
import type { Shared } from './share.ts'

/** The same request to `pronounce serve`. */
export function curl({ text, questions }: Shared): string {
  const body = JSON.stringify({ state: text, questions }, undefined, 2)
  return `curl http://127.0.0.1:8000/v1/systemone \\
  -H 'content-type: application/json' \\
  -d '${body.replaceAll("'", String.raw`'\''`)}'
`
}

/** The same request in a program. */
export function typescript({ text, questions }: Shared, { where, title }: ModelRef): string {
  const model =
    typeof where === 'string' && where.startsWith('hf:')
      ? JSON.stringify(where)
      : `new URL('.', import.meta.resolve('pronounce/models/decider-nano/config.json'))`
  const note = typeof where === 'string' ? '' : ` // here: ${title}, from files`
  return `import { loadDecider, openDevice, readQuestions } from 'pronounce'

const device = await openDevice('auto')
const decider = await loadDecider(${model}, { device })${note}
const questions = readQuestions(${JSON.stringify(questions, undefined, 2)})
const { answers } = await decider.decide(${JSON.stringify(text)}, questions)
console.log(answers)
`
}
