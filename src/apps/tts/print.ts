import type { SpeechProgress } from './options.ts'
import type { SpeechReport } from './speech.ts'
import type { Tts } from './tts.ts'

const seconds = (n: number): string => `${n.toFixed(1)} s`

/** 'speaking 1.2 s, 0.4 times real time, about 2 s left' */
export function printSpeechProgress(
  { frames, expectedFrames, seconds: took }: SpeechProgress,
  { framesPerSecond }: Pick<Tts, 'framesPerSecond'>,
): string {
  const said = frames / framesPerSecond
  const left = Math.max(0, (took / frames) * (expectedFrames - frames))
  return `speaking ${seconds(said)}, ${(said / took).toFixed(2)} times real time, about ${Math.ceil(left)} s left`
}

/** What it said and how fast, a line each. The warnings have been told before. */
export function printSpoken({ seconds: length, seed, pieces, ended, took, unknown }: SpeechReport): string[] {
  const lines = [
    `speech: ${length.toFixed(2)} s in ${seconds(took.all)} (codes ${seconds(took.language)}, sound ${seconds(took.codec)}), ` +
      `${(length / took.all).toFixed(2)} times real time, first sound after ${took.first.toFixed(2)} s, ` +
      `${pieces.length > 1 ? `${pieces.length} pieces, ` : ''}seed ${seed}`,
  ]
  if (unknown.length > 0) lines.push(`note: the model does not know ${unknown.map((s) => `"${s}"`).join(', ')}`)
  if (ended === 'length') lines.push('note: it did not come to an end by itself; --max-seconds allows more')
  return lines
}
