import { strip } from './python.ts'

const ABSTAINING = new Set(['other', 'unsure', 'something else', 'neither of these', 'other / not covered'])
const STARTS = ['none of the above', 'none of these', 'not listed', 'no suitable', 'does not apply', 'cannot tell']

/** Does an option stand for "none of the others"? */
export function isAbstaining(option: string): boolean {
  const plain = strip(option).toLowerCase()
  return ABSTAINING.has(plain) || STARTS.some((start) => plain.startsWith(start))
}

/** A question with a known answer. */
export interface Narrowed {
  readonly options: readonly string[]
  readonly gold: number
}

/**
 * Options as the original shows them in training and, unless told otherwise, in evaluation: at most `most`, the right one
 * and all abstaining ones among them, in random order. `random` gives numbers from 0 to below 1.
 */
export function narrow({ options, gold }: Narrowed, most: number, random: () => number): Narrowed {
  const indices = options.map((_, i) => i)
  const kept = indices.filter((i) => i === gold || isAbstaining(options[i]!))
  const others = shuffle(
    indices.filter((i) => !kept.includes(i)),
    random,
  )
  const shown = options.length > most ? [...kept, ...others.slice(0, Math.max(0, most - kept.length))] : indices
  const order = shuffle(shown, random)
  return { options: order.map((i) => options[i]!), gold: order.indexOf(gold) }
}

/** Fisher and Yates' shuffle, of a copy. */
function shuffle(values: readonly number[], random: () => number): number[] {
  const shuffled = [...values]
  for (let i = shuffled.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1))
    ;[shuffled[i], shuffled[j]] = [shuffled[j]!, shuffled[i]!]
  }
  return shuffled
}
