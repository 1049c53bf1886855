import { createScanner } from 'jsonc-parser'
import { InputError } from '../../errors.ts'
import { Float, type JsonValue } from './json.ts'

/** What Python's `json.loads` says of a text that is not JSON: the `cause` of parseJson's error. */
export interface JsonFault {
  readonly error: string
  /** Where, counted in code points. */
  readonly position: number
  /** It may be JSON, and is more of it than Python reads. */
  readonly isLimit: boolean
}

const MOST_LEVELS = 1000 // of lists and objects: Python's recursion limit
const MOST_DIGITS = 4300 // of an integer

/** jsonc-parser's numbers of tokens, which it exports as types alone. */
const Token = {
  ...{ openObject: 1, closeObject: 2, openList: 3, closeList: 4, comma: 5, colon: 6 },
  ...{ text: 10, number: 11, lineBreak: 14, space: 15, unknown: 16, end: 17 },
} as const

const NUMBER = /-?\d+(?:\.\d+)?/y // of one that the scanner finds unfinished
const NAME = /null|true|false|NaN|-?Infinity/y

/** In a string: what may not stand there (all below the space), and every escape. A backslash alone begins none. */
const SUSPECT = /[^ -\uffff]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})?/g

/**
 * Reads JSON as Python's `json.loads` does: keys stay in order, the last of equal keys counts, integers keep all their
 * digits, `1.0` stays a float, NaN and Infinity are numbers.
 *
 * @throws InputError whose `cause` is a JsonFault
 */
export function parseJson(text: string): JsonValue {
  const scanner = createScanner(text)
  let token: number = Token.unknown

  /** The next token that is no space; comments are no JSON. */
  const advance = (): void => {
    do token = scanner.scan()
    while (token === Token.space || token === Token.lineBreak)
  }
  const fail = (error: string, at = scanner.getTokenOffset(), isLimit = false): never => {
    const fault: JsonFault = { error, position: [...text.slice(0, at)].length, isLimit }
    throw new InputError(`json: ${error} at character ${fault.position}, expected JSON`, 'input', { cause: fault })
  }

  function readValue(depth: number): JsonValue {
    if (depth > MOST_LEVELS) return fail(`more than ${MOST_LEVELS} levels`, undefined, true)
    if (token === Token.openObject) return readObject(depth)
    if (token === Token.openList) return readList(depth)
    if (token === Token.text) return readText()
    const value = token === Token.number ? readNumber() : readName()
    advance()
    return value
  }

  function readObject(depth: number): JsonValue {
    const object = new Map<string, JsonValue>()
    for (advance(); object.size > 0 || token !== Token.closeObject; advance()) {
      if (token !== Token.text) return fail('Expecting property name enclosed in double quotes')
      const key = readText()
      if (token !== Token.colon) return fail("Expecting ':' delimiter")
      advance()
      object.set(key, readValue(depth + 1))
      if (token === Token.closeObject) break
      if (token !== Token.comma) return fail("Expecting ',' delimiter")
    }
    advance()
    return object
  }

  function readList(depth: number): JsonValue {
    const list: JsonValue[] = []
    for (advance(); list.length > 0 || token !== Token.closeList; advance()) {
      list.push(readValue(depth + 1))
      if (token === Token.closeList) break
      if (token !== Token.comma) return fail("Expecting ',' delimiter")
    }
    advance()
    return list
  }

  function readText(): string {
    const start = scanner.getTokenOffset()
    if (scanner.getTokenError() !== 0) {
      const at = wrongAt(start + 1)
      if (at === undefined) return fail('Unterminated string starting at')
      if (text[at] !== '\\') return fail('Invalid control character at', at)
      if (at + 1 === text.length) return fail('Unterminated string starting at')
      return text[at + 1] === 'u' ? fail('Invalid \\uXXXX escape', at + 1) : fail('Invalid \\escape', at)
    }
    const value = scanner.getTokenValue()
    advance()
    return value
  }

  /** What a string may not have, of all that is suspect behind its opening quote. */
  function wrongAt(begin: number): number | undefined {
    SUSPECT.lastIndex = begin
    for (let found = SUSPECT.exec(text); found; found = SUSPECT.exec(text))
      if (found[0].length === 1) return found.index
    return undefined
  }

  function readNumber(): JsonValue {
    const start = scanner.getTokenOffset()
    const written = scanner.getTokenError() === 0 ? scanner.getTokenValue() : take(NUMBER)
    const value = Number(written)
    if (/[.e]/i.test(written)) return Number.isSafeInteger(value) ? new Float(value) : value
    if (Number.isSafeInteger(value)) return value + 0 // an integer has no -0
    return written.length > MOST_DIGITS ? fail(`more than ${MOST_DIGITS} digits`, start, true) : BigInt(written)
  }

  /** null, true, false, and Python's NaN, Infinity and -Infinity, which the scanner does not know. */
  function readName(): JsonValue {
    const name = take(NAME)
    if (name === 'null') return null
    return name === 'true' || name === 'false' ? name === 'true' : Number(name)
  }

  /** What matches at the token, which may be longer: Python goes on behind the match. */
  function take(pattern: RegExp): string {
    pattern.lastIndex = scanner.getTokenOffset()
    const [found] = pattern.exec(text) ?? fail('Expecting value')
    scanner.setPosition(pattern.lastIndex)
    return found
  }

  advance()
  const value = readValue(1)
  return token === Token.end ? value : fail('Extra data')
}
