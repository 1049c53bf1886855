import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { FRAMES_PER_SECOND, fakeVoice, speech } from './fake_voice.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

const MINUTES = 5
const PIECES = 40
const paragraph = `/${Array(20).fill('ɡˈʊd lˈʌk').join(' ')}/.` // some ten seconds
const perPiece = Math.ceil((60 * MINUTES * FRAMES_PER_SECOND) / PIECES)

/** Bytes that are in use. */
async function inUse(): Promise<number> {
  await new Promise((resolve) => setTimeout(resolve)) // what was awaited is let go
  collect()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

test('five minutes of speech take no more memory than the first piece', async () => {
  const { tts } = fakeVoice((call) => ({ frames: speech(perPiece, call * 7) }))
  const text = Array<string>(PIECES).fill(paragraph).join('\n\n')
  const used: number[] = []
  let [piece, samples] = [0, 0]
  for await (const chunk of tts.say(text, { cfgScale: 1 })) {
    if (chunk.piece !== piece) used.push(await inUse())
    piece = chunk.piece
    samples += chunk.samples.length
  }
  expect(samples / tts.sampleRate).toBeGreaterThan(60 * MINUTES - PIECES)
  expect(used).toHaveLength(PIECES - 1)
  const bytes = 4 * samples
  expect(used.at(-1)! - used[0]!).toBeLessThan(bytes / 20)
})
