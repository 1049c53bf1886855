import type { Voice } from '../src/apps/tts/speak.ts'
import { createTts } from '../src/apps/tts/tts.ts'
import type { Device } from '../src/device/device.ts'
import type { Row } from './measure.ts'

const PIECE_SECONDS = 10
/** As long, at the usual rate: nothing is cut as too long for its text. */
const PARAGRAPH = `${Array<string>(20).fill('ɡˈʊd lˈʌk').join(' ')}.`

/**
 * A text of so many minutes, streamed by the whole app: how much faster than it is heard, and the memory of the device
 * and of the process after the first piece and after the last.
 */
export async function longSpeech(device: Device, voice: Voice, minutes: number): Promise<Row> {
  const tts = createTts(
    voice,
    device,
    async () => ({ phonemes: (text) => text }),
    () => {},
  )
  const pieces = Math.max(2, Math.round((60 * minutes) / PIECE_SECONDS))
  const text = Array<string>(pieces).fill(PARAGRAPH).join('\n\n')
  const maxSeconds = (60 * minutes) / pieces
  const minFrames = Math.floor(maxSeconds * tts.framesPerSecond)
  const speech = tts.say(text, { maxSeconds, sampling: { minFrames } })
  const start = performance.now()
  const memory: { deviceBytes: number; hostBytes: number }[] = []
  let [piece, samples] = [0, 0]
  for await (const chunk of speech) {
    if (chunk.piece !== piece) memory.push(memoryOf(device))
    piece = chunk.piece
    samples += chunk.samples.length
  }
  memory.push(memoryOf(device))
  const totalMs = performance.now() - start
  const seconds = samples / tts.sampleRate
  const report = await speech.report
  const [first, last] = [memory[0]!, memory.at(-1)!]
  return {
    case: `${report.pieces.length} pieces, streamed`,
    ...{ seconds, medianMs: totalMs, runs: 1, realTime: (1000 * seconds) / totalMs, warnings: report.warnings.length },
    ...{ deviceBytesAfterFirst: first.deviceBytes, deviceBytesAfterLast: last.deviceBytes },
    ...{ hostBytesAfterFirst: first.hostBytes, hostBytesAfterLast: last.hostBytes },
  }
}

function memoryOf({ memory }: Device): { deviceBytes: number; hostBytes: number } {
  return { deviceBytes: memory.keptBytes + memory.slotBytes, hostBytes: process.memoryUsage.rss() }
}
