import { once } from 'node:events'
import { access, constants, open, stat, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Writable } from 'node:stream'
import { joined } from '../apps/tts/speech.ts'
import { encodeWav, InputError, type WavFormat, wavHeader, wavSamples } from '../index.ts'

/** Where samples go, in order. */
export interface SoundOut {
  write(samples: Float32Array): Promise<void>
  /** All was written. */
  end(): Promise<void>
  /** Nothing more comes, for the work was stopped. */
  stop(): Promise<void>
}

export interface SoundOptions {
  readonly rate: number
  readonly format: WavFormat
  /** The samples alone, without a header. */
  readonly raw?: boolean | undefined
}

/** A file, or stdout for -. Streamed, samples are written as they come; else all of them at the end, or nothing. */
export async function openOutput(path: string, stream: boolean, options: SoundOptions): Promise<SoundOut> {
  if (!stream) return wholeOutput(path, options)
  return path === '-' ? pipeOutput(process.stdout, options) : fileOutput(path, options)
}

/** @throws InputError for a path that cannot be written */
export async function expectWritable(path: string): Promise<void> {
  if (path === '-') {
    if (process.stdout.isTTY) throw new InputError('--output: stdout is a terminal, expected a file or a pipe')
    return
  }
  const found = await stat(path).catch(() => undefined)
  if (found?.isDirectory()) throw new InputError(`--output: ${path} is a folder, expected a file`)
  await access(found ? path : dirname(path), constants.W_OK).catch((cause) => Promise.reject(unwritable(path, cause)))
}

const unwritable = (path: string, cause: Error): InputError =>
  new InputError(
    `--output: ${path} cannot be written (${cause.message}), expected a file in a folder that is there`,
    'input',
    { cause },
  )

function wholeOutput(path: string, { rate, format, raw }: SoundOptions): SoundOut {
  const parts: Float32Array[] = []
  return {
    write: async (samples) => void parts.push(samples),
    async end() {
      const samples = joined(parts)
      const bytes = raw ? wavSamples(samples, format) : encodeWav(samples, rate, format)
      if (path === '-') await send(process.stdout, bytes)
      else await writeFile(path, bytes).catch((cause: Error) => Promise.reject(unwritable(path, cause)))
    },
    stop: async () => {},
  }
}

/** A header that says nothing of the length, and samples. */
export function pipeOutput(pipe: Writable, { rate, format, raw }: SoundOptions): SoundOut {
  let begun = raw ?? false
  return {
    async write(samples) {
      if (!begun) await send(pipe, wavHeader(rate, format))
      begun = true
      await send(pipe, wavSamples(samples, format))
    },
    end: async () => {},
    stop: async () => {},
  }
}

async function send(pipe: Writable, bytes: Uint8Array): Promise<void> {
  if (!pipe.write(bytes)) await once(pipe, 'drain')
}

/** A file that can be read while it grows; its header is mended when the length is known, also where work was stopped. */
async function fileOutput(path: string, { rate, format, raw }: SoundOptions): Promise<SoundOut> {
  const fail = (cause: Error) => Promise.reject(unwritable(path, cause))
  const file = await open(path, 'w').catch(fail)
  if (!raw) await file.appendFile(wavHeader(rate, format)).catch(fail)
  const writeAt = (position: number, bytes: Uint8Array) => file.write(bytes, 0, bytes.length, position)
  let length = 0
  async function end(): Promise<void> {
    try {
      if (!raw && (await file.stat()).isFile()) await writeAt(0, wavHeader(rate, format, length))
    } finally {
      await file.close()
    }
  }
  return {
    async write(samples) {
      await file.appendFile(wavSamples(samples, format)).catch(fail)
      length += samples.length
    },
    end: () => end().catch(fail),
    stop: () => end().catch(() => {}),
  }
}
