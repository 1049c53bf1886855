import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { afterAll, describe, expect, test } from 'vitest'
import { openOutput, pipeOutput, type SoundOut } from '../../src/cli/sound_out.ts'
import { encodeWav, InputError, wavHeader, wavSamples } from '../../src/index.ts'

const folder = mkdtempSync(join(tmpdir(), 'pronounce-'))
afterAll(() => rmSync(folder, { recursive: true }))

const samples = Float32Array.from({ length: 1000 }, (_, i) => Math.sin(i / 7) / 2)
async function feed(out: SoundOut): Promise<void> {
  await out.write(samples.subarray(0, 300))
  await out.write(samples.subarray(300))
}

describe.each(['s16', 'f32'] as const)('%s', (format) => {
  const options = { rate: 44100, format }
  const [wav, raw] = [Buffer.from(encodeWav(samples, 44100, format)), Buffer.from(wavSamples(samples, format))]

  test.each([false, true])('into a file, streamed: %s', async (stream) => {
    const file = join(folder, `${format}-${stream}`)
    const out = await openOutput(file, stream, options)
    await feed(out)
    await out.end()
    expect(readFileSync(file).equals(wav)).toBe(true)
    const bare = await openOutput(file, stream, { ...options, raw: true })
    await feed(bare)
    await bare.end()
    expect(readFileSync(file).equals(raw)).toBe(true)
  })

  test('what is streamed is there before its end, and whole where it was stopped', async () => {
    const file = join(folder, `${format}-stopped.wav`)
    const out = await openOutput(file, true, options)
    await feed(out)
    expect(readFileSync(file).equals(Buffer.concat([wavHeader(44100, format), raw]))).toBe(true)
    await out.stop()
    expect(readFileSync(file).equals(wav)).toBe(true)
  })

  test('into a pipe: a header that knows no length, once', async () => {
    const pipe = new PassThrough()
    const read = buffer(pipe)
    await feed(pipeOutput(pipe, options))
    pipe.end()
    expect((await read).equals(Buffer.concat([wavHeader(44100, format), raw]))).toBe(true)
  })
})

test('a pipe that is full is waited for', async () => {
  const pipe = new PassThrough({ highWaterMark: 16 })
  let written = false
  const writing = pipeOutput(pipe, { rate: 44100, format: 's16' })
    .write(samples)
    .then(() => {
      written = true
    })
  await new Promise((resolve) => setTimeout(resolve, 20))
  expect(written).toBe(false)
  pipe.resume()
  await writing
})

test('a file that was there stays where all is written at the end and the work was stopped', async () => {
  const file = join(folder, 'old.wav')
  writeFileSync(file, 'old')
  const out = await openOutput(file, false, { rate: 44100, format: 's16' })
  await feed(out)
  await out.stop()
  expect(readFileSync(file, 'utf8')).toBe('old')
})

test('a folder that is not there', async () => {
  const out = openOutput(join(folder, 'no/such.wav'), true, { rate: 44100, format: 's16' })
  await expect(out).rejects.toThrow(/^--output: .+ cannot be written/)
  await expect(out).rejects.toBeInstanceOf(InputError)
})
