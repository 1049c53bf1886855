import { readFile } from 'node:fs/promises'
import { InputError, type Questions, readQuestions } from '../index.ts'

/** The questions of a schema file. */
export async function readSchema(path: string): Promise<Questions> {
  const json = await readFile(path, 'utf8').catch((cause: Error) => {
    throw new InputError(`--schema: ${path} cannot be read (${cause.message}), expected a JSON file`, 'input', {
      cause,
    })
  })
  try {
    const questions = readQuestions(JSON.parse(json.replace(/^\uFEFF/, '')))
    if (Object.keys(questions).length === 0)
      throw new InputError(`--schema: ${path} has no questions, expected at least one`)
    return questions
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause
    throw new InputError(
      `--schema: ${path} is not JSON (${cause.message}), expected {name: {type, question, options}}`,
      'input',
      { cause },
    )
  }
}
