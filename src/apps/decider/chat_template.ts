import { WeightsError } from '../../errors.ts'
import type { Tokenizer } from '../../text/tokenizer.ts'
import { LETTERS } from './labels.ts'
import { answerOf, type ChatFrame } from './prompt.ts'

const USER_TEXT = 'the text of the user' // stands for it while the template is rendered
/** A think block that the template leaves open, and what closes it. */
const OPEN_THOUGHTS = [
  ['<think>\n', '</think>\n\n'],
  ['<think>', '</think>\n\n'],
  ['<|channel>thought\n', '<channel|>'],
] as const

/**
 * What a checkpoint's chat template (Jinja) puts around one user turn, without a system prompt and without thinking.
 * `special` are the texts of tokens that templates name: bos_token, eos_token.
 *
 * @throws WeightsError for a template that does not render, or in which the answer letters would be other tokens
 */
export async function chatFrame(
  template: string,
  tokenizer: Tokenizer,
  special: Readonly<Record<string, string>> = {},
): Promise<ChatFrame> {
  const rendered = await render(template, special)
  const parts = rendered.split(USER_TEXT)
  if (parts.length !== 2) throw refuse(`shows the user's text ${parts.length - 1} times`, 'once')
  const [head, open] = parts as [string, string]
  const thought = OPEN_THOUGHTS.find(([start]) => open.endsWith(start))
  const frame = { head, tail: open + (thought?.[1] ?? '') }
  checkAnswers(tokenizer, frame)
  return frame
}

async function render(template: string, special: Readonly<Record<string, string>>): Promise<string> {
  const { Template } = await import('@huggingface/jinja') // for chat models alone
  try {
    return new Template(template).render({
      ...special,
      messages: [{ role: 'user', content: USER_TEXT }],
      add_generation_prompt: true,
      ...(template.includes('enable_thinking') && { enable_thinking: false }),
    })
  } catch (cause) {
    throw refuse(`does not render (${(cause as Error).message})`, 'a template of one user turn', cause)
  }
}

/** The letter has to be a token of its own behind the answer's bracket, and the bracket's piece one of its own too. */
function checkAnswers(tokenizer: Tokenizer, { tail }: ChatFrame): void {
  const answer = answerOf('', '')
  const ids = tokenizer.encode(answer)
  const split = [...LETTERS].find((letter) => {
    const behind = [...ids, ...tokenizer.encode(letter)]
    return behind.length !== ids.length + 1 || !sameIds(tokenizer.encode(answer + letter), behind)
  })
  if (split)
    throw refuse(`leads to an answer in which '${split}' is no token of its own`, 'a tokenizer of a Decider model')
  if (!sameIds(tokenizer.encode(tail + answer), [...tokenizer.encode(tail), ...ids]))
    throw refuse('ends in a token that merges with the answer', 'an end that stays apart')
}

const sameIds = (a: readonly number[], b: readonly number[]): boolean =>
  a.length === b.length && a.every((id, i) => id === b[i])

const refuse = (found: string, expected: string, cause?: unknown): WeightsError =>
  new WeightsError('format', `chat template: ${found}, expected ${expected}`, { cause })
