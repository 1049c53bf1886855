import { readFile } from 'node:fs/promises'
import { InputError, type JsonValue, parseJson, type Questions, readQuestions } from '../index.ts'

/** The questions of a schema file. */
export async function readSchema(path: string): Promise<Questions> {
  const json = await readFile(path, 'utf8').catch((cause: Error) => {
    throw new InputError(`--schema: ${path} cannot be read (${cause.message}), expected a JSON file`, 'input', {
      cause,
    })
  })
  const questions = readQuestions(parsed(path, json.replace(/^\uFEFF/, '')))
  if (Object.keys(questions).length === 0)
    throw new InputError(`--schema: ${path} has no questions, expected at least one`)
  return questions
}

/** Keeps the order of options, also of those whose names are numbers. */
function parsed(path: string, json: string): JsonValue {
  try {
    return parseJson(json)
  } catch (cause) {
    throw new InputError(
      `--schema: ${path} is not JSON (${(cause as Error).message}), expected {name: {type, question, options}}`,
      'input',
      { cause },
    )
  }
}
