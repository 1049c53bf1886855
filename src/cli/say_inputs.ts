import { readFile } from 'node:fs/promises'
import { parse } from 'node:path'
import { addAbortSignal } from 'node:stream'
import { buffer as readAll } from 'node:stream/consumers'
import { decodeWav, InputError, type SayOptions, type Sound } from '../index.ts'

/** A voice of the command line. */
export interface Speaker extends Pick<SayOptions, 'speaker' | 'voice'> {
  readonly name: string
}

/** The text of the argument, of stdin where that is -, or of a file. */
export async function readText(
  text: string | undefined,
  file: string | undefined,
  signal: AbortSignal,
): Promise<string> {
  if (file !== undefined && file !== '-') return decoded('--file', await read('--file', file, 'a text file'))
  if (file !== '-' && text !== '-') return text!
  return decoded('stdin', await readAll(addAbortSignal(signal, process.stdin))).trim()
}

function decoded(where: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    throw new InputError(`${where}: the text is not UTF-8; convert it`, 'input', { cause })
  }
}

/**
 * `anna=a.json`, or `a.json` whose voice is called a: a JSON file of the speaker's numbers, or { "speaker": [...] }.
 * `anna=3` is the made-up voice of a seed.
 */
export async function readSpeaker(given: string): Promise<Speaker> {
  const [, name, value] = /^([\p{L}\p{N}_ -]+)=(.+)$/u.exec(given) ?? [undefined, parse(given).name, given]
  if (/^\d+$/.test(value!) && name !== value) return { name: name!, voice: Number(value) }
  const expected = 'a JSON array of numbers'
  const json = await readJson('--speaker', value!, expected)
  const numbers = Array.isArray(json) ? json : (json as { speaker?: unknown } | null)?.speaker
  if (Array.isArray(numbers) && numbers.every((n) => typeof n === 'number')) return { name: name!, speaker: numbers }
  throw new InputError(`--speaker: ${value} holds something else, expected ${expected}`)
}

/** A JSON file: { "word": "/IPA/ or other words" }. */
export async function readDictionary(path: string): Promise<Record<string, string>> {
  const expected = 'a JSON object of words and what is said for them'
  const value = await readJson('--dictionary', path, expected)
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  if (isObject && Object.values(value).every((said) => typeof said === 'string')) return value as Record<string, string>
  throw new InputError(`--dictionary: ${path} holds something else, expected ${expected}`)
}

export async function readPrefix(path: string): Promise<Sound> {
  const file = await read('--prefix', path, 'a WAV file')
  try {
    return decodeWav(file)
  } catch (cause) {
    throw new InputError(`--prefix: ${path}: ${(cause as Error).message}`, 'input', { cause })
  }
}

async function readJson(flag: string, path: string, expected: string): Promise<unknown> {
  const json = (await read(flag, path, expected)).toString('utf8')
  try {
    return JSON.parse(json)
  } catch (cause) {
    throw unreadable(flag, path, 'is not JSON', expected, cause as Error)
  }
}

const read = (flag: string, path: string, expected: string): Promise<Buffer> =>
  readFile(path).catch((cause: Error) => Promise.reject(unreadable(flag, path, 'cannot be read', expected, cause)))

const unreadable = (flag: string, path: string, what: string, expected: string, cause: Error): InputError =>
  new InputError(`${flag}: ${path} ${what} (${cause.message}), expected ${expected}`, 'input', { cause })
