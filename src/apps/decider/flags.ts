import { InputError } from '../../errors.ts'
import { choice, type Question, type Questions, yesNo } from './question.ts'

/** `--question` and `--options` as they came on the command line. */
export interface Flag {
  readonly name: 'question' | 'options'
  readonly value: string
}

/**
 * Questions from flags: each question takes the options after it, or, with as many options as questions, those of its
 * place. A question without options is yes or no. The text of a question is its name in the answers.
 */
export function questionsOf(flags: readonly Flag[]): Questions {
  const texts = flags.filter(({ name }) => name === 'question').map(({ value }) => value)
  const given = flags.filter(({ name }) => name === 'options')
  if (new Set(texts).size < texts.length)
    throw new InputError('--question: the same question was given twice, expected it once')
  const lists = given.length === texts.length ? given.map(({ value }) => value) : followingOptions(flags)
  const questions = texts.map((text, i): [string, Question] => {
    const list = lists[i]
    return [text, list === undefined ? yesNo(text) : choice(text, optionsOf(list))]
  })
  return Object.fromEntries(questions)
}

/** For every question the options that follow it before the next question. */
function followingOptions(flags: readonly Flag[]): (string | undefined)[] {
  const lists: (string | undefined)[] = []
  for (const { name, value } of flags) {
    if (name === 'question') lists.push(undefined)
    else if (lists.length === 0 || lists.at(-1) !== undefined)
      throw new InputError(`--options: '${value}' has no question, expected one --question before each --options`)
    else lists[lists.length - 1] = value
  }
  return lists
}

/** `a,b,c`; a comma of an option's own is written `\,`. */
function optionsOf(list: string): string[] {
  const options = list.split(/(?<!\\),/).map((option) => option.replaceAll('\\,', ',').trim())
  if (options.includes('')) throw new InputError(`--options: '${list}' has an empty option, expected a,b,c; remove it`)
  const twice = options.find((option, i) => options.indexOf(option) !== i)
  if (twice !== undefined) throw new InputError(`--options: '${list}' has '${twice}' twice, expected it once`)
  return options
}
