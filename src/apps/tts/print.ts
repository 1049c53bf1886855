import type { SpeechProgress, Spoken, Tts } from './tts.ts'

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

/** What it said and how fast, a line each. */
export function printSpoken({ samples, sampleRate, seed, ended, took, unknown }: Spoken): string[] {
  const length = samples.length / sampleRate
  const lines = [
    `speech: ${length.toFixed(2)} s in ${seconds(took.all)} (codes ${seconds(took.language)}, sound ${seconds(took.codec)}), ` +
      `${(length / took.all).toFixed(2)} times real time, seed ${seed}`,
  ]
  if (unknown.length > 0) lines.push(`note: the model does not know ${unknown.map((s) => `"${s}"`).join(', ')}`)
  if (ended === 'length') lines.push('note: it did not come to an end by itself; --max-seconds allows more')
  return lines
}
