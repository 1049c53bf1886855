import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { InputError } from '../index.ts'

const LINE_END = 10
const MOST_BYTES = 64 * 2 ** 20 // of a line, which is held whole

/**
 * The lines of a file, numbered from 1, without their ends and without the empty ones. Holds one line and one chunk.
 * A line ends with \n alone: JSON text may hold the other characters that break lines.
 */
export async function* readLines(
  flag: string,
  path: string,
  signal?: AbortSignal,
): AsyncGenerator<{ readonly number: number; readonly text: string }> {
  let parts: Buffer[] = []
  let bytes = 0
  let number = 0
  const lineOf = () => {
    const text = Buffer.concat(parts)
      .toString('utf8')
      .replace(/^\uFEFF/, '')
      .trim()
    parts = []
    bytes = 0
    number++
    return text === '' ? [] : [{ number, text }]
  }
  try {
    for await (const chunk of createReadStream(path, { signal }) as AsyncIterable<Buffer>) {
      for (let from = 0; from < chunk.length; ) {
        const end = chunk.indexOf(LINE_END, from)
        const part = chunk.subarray(from, end < 0 ? chunk.length : end)
        parts.push(part)
        bytes += part.length
        if (bytes > MOST_BYTES)
          throw new InputError(`${flag}: line ${number + 1} of ${path} has over ${MOST_BYTES} bytes; is it JSON lines?`)
        if (end >= 0) yield* lineOf()
        from = end < 0 ? chunk.length : end + 1
      }
    }
    if (bytes > 0) yield* lineOf()
  } catch (cause) {
    if (!(cause instanceof Error && 'syscall' in cause)) throw cause
    throw new InputError(`${flag}: ${path} cannot be read (${cause.message}), expected JSON lines`, 'input', { cause })
  }
}

/** A file of lines that grows. */
export interface Log {
  /** Lines that were there. */
  readonly lines: number
  /** The last of them. */
  readonly last: string | undefined
  /** Resolves when they are on the disk. */
  append(lines: readonly string[]): Promise<void>
  close(): Promise<void>
}

/**
 * Opens a file to go on with: what a kill left of a line is cut off. Lines begin with `begin`: a file that holds anything
 * else stays as it is.
 */
export async function openLog(flag: string, path: string, begin: string): Promise<Log> {
  const file = await open(path, 'a+').catch((cause: Error) => {
    throw new InputError(`${flag}: ${path} cannot be written (${cause.message}), expected a file`, 'input', { cause })
  })
  let lines = 0
  let [start, end] = [0, 0] // of the last whole line
  let at = 0
  for await (const chunk of file.createReadStream({ start: 0, autoClose: false }) as AsyncIterable<Buffer>) {
    for (let from = chunk.indexOf(LINE_END); from >= 0; from = chunk.indexOf(LINE_END, from + 1)) {
      lines++
      ;[start, end] = [end, at + from + 1]
    }
    at += chunk.length
  }
  const text = async (from: number, length: number): Promise<string> =>
    (await file.read({ buffer: Buffer.alloc(length), position: from })).buffer.toString('utf8')
  const last = await text(start, end - start)
  const rest = await text(end, Math.min(at - end, begin.length))
  if (!(lines === 0 || last.startsWith(begin)) || !begin.startsWith(rest)) {
    await file.close()
    throw new InputError(`${flag}: ${path} holds something else, expected a new file or one of this command's`)
  }
  if (at > end) await file.truncate(end)
  return {
    lines,
    last: lines === 0 ? undefined : last.trimEnd(),
    async append(lines) {
      await file.appendFile(lines.map((line) => `${line}\n`).join(''))
      await file.datasync()
    },
    close: () => file.close(),
  }
}
