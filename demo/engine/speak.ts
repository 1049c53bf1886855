import type { SayOptions, SpeechReport, Tts } from '../../src/index.ts'

/** Speech as it is made: every chunk goes to `onChunk`; resolves to what there is to know of all of it. */
export async function speak(
  tts: Tts,
  text: string,
  options: SayOptions,
  onChunk: (samples: Float32Array<ArrayBuffer>) => void,
): Promise<Pick<SpeechReport, 'phonemes' | 'ended' | 'warnings'>> {
  const speech = tts.say(text, options)
  for await (const { samples } of speech) onChunk(samples as Float32Array<ArrayBuffer>)
  const { phonemes, ended, warnings } = await speech.report
  return { phonemes, ended, warnings }
}
