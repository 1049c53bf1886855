import { InputError } from '../../errors.ts'
import type { Codes } from '../../models/zonos/delay.ts'
import { bell } from './channel.ts'
import type { Ended } from './guards.ts'

/** Samples as they are made. */
export interface SpeechChunk {
  /** Mono, in [-1, 1]; the caller's own. */
  readonly samples: Float32Array
  readonly sampleRate: number
  /** Seconds of speech that come before. */
  readonly at: number
  /** Which piece of the text is heard, from 0 on. */
  readonly piece: number
}

/** What was said in one go: a sentence, several short ones, or a part of a long one. */
export interface SpokenPiece {
  readonly text: string
  readonly phonemes: string
  /** Without the pause behind it. 0: it was tried and gave no sound. */
  readonly seconds: number
  readonly ended: Ended
  /** What it was drawn with: the seed that was asked for, or one that follows where it gave no sound. */
  readonly seed: number
}

/** What there is to know of a speech besides its samples. */
export interface SpeechReport {
  readonly sampleRate: number
  /** Of sound. */
  readonly seconds: number
  readonly pieces: readonly SpokenPiece[]
  readonly phonemes: string
  /** Symbols of `phonemes` that the model does not know. */
  readonly unknown: readonly string[]
  readonly seed: number
  /** 'eos' where all pieces ended by themselves, else how the first other one did. */
  readonly ended: Ended
  /** What the guards did, in words. */
  readonly warnings: readonly string[]
  /**
   * Seconds that it took from the begin of the work: until the first sound was there, and until all was; while the
   * language model was at work, and what the codec needed beyond that.
   */
  readonly took: { readonly first: number; readonly all: number; readonly language: number; readonly codec: number }
}

export interface Spoken extends SpeechReport {
  /** Mono, in [-1, 1]. */
  readonly samples: Float32Array
  /** Codes of the samples, pauses included, those of the audio prefix first. */
  readonly codes: Codes
}

/**
 * Speech that is being made: a promise of all of it, and chunks of it to iterate over, each as soon as it is there. Who
 * iterates takes the samples; they are kept for nobody, so `report` tells the rest and awaiting the whole rejects.
 * Leaving the loop stops the work. Of a text of several pieces the next one is not begun while 10 s of samples wait to
 * be taken; other calls are served meanwhile.
 */
export interface Speech extends Promise<Spoken>, AsyncIterable<SpeechChunk> {
  readonly report: Promise<SpeechReport>
}

/** Where a speech goes. */
export interface Outlet {
  put(samples: Float32Array, piece: number): void
  putCodes(codes: Codes): void
  /** Whether enough waits to be taken. */
  full(): boolean
  /** Resolves when it is not full. */
  room(): Promise<void>
}

const AHEAD = 10 // seconds

/** Begins the work. `say` is told through the signal when nobody wants more. */
export function speechOf(
  sampleRate: number,
  say: (outlet: Outlet, left: AbortSignal) => Promise<SpeechReport>,
  signal?: AbortSignal,
): Speech {
  const left = new AbortController()
  const [news, taken] = [bell(), bell()]
  let chunks: SpeechChunk[] = []
  let codes: Codes[] = []
  let made = 0 // samples
  let [iterated, done] = [false, false]

  const waiting = (): number => chunks.reduce((n, { samples }) => n + samples.length, 0)
  const full = (): boolean => iterated && waiting() >= AHEAD * sampleRate
  const outlet: Outlet = {
    put(samples, piece) {
      chunks.push({ samples, sampleRate, at: made / sampleRate, piece })
      made += samples.length
      news.ring()
    },
    putCodes: (some) => void (iterated || codes.push(some)),
    full,
    async room() {
      while (full()) await taken.rung()
    },
  }
  const report = say(outlet, left.signal)
  const end = (): void => {
    done = true
    if (signal?.aborted) chunks = []
    news.ring()
  }
  report.then(end, end)

  const whole = report.then((report): Spoken => {
    if (iterated)
      throw new InputError('say: its samples went to the loop over them; await its report, or keep the chunks')
    const samples = joined(chunks.map((chunk) => chunk.samples))
    chunks = [{ samples, sampleRate, at: 0, piece: 0 }]
    return { ...report, samples, codes: joinedCodes(codes) }
  })

  async function* iterate(): AsyncGenerator<SpeechChunk> {
    try {
      for (;;) {
        const chunk = signal?.aborted ? undefined : chunks.shift()
        taken.ring()
        if (chunk) yield chunk
        else if (done) return void (await report)
        else await news.rung()
      }
    } finally {
      if (!done) left.abort(new DOMException('say: the loop over its chunks was left', 'AbortError'))
      await report.catch(() => {})
    }
  }

  const heard = (): void => void whole.catch(() => {}) // who asks otherwise is told there
  const speech = Object.assign(whole, {
    report,
    [Symbol.asyncIterator]() {
      if (iterated) throw new InputError('say: its samples went to another loop; keep the chunks, or say it again')
      iterated = true
      codes = []
      heard()
      return iterate()
    },
  })
  return Object.defineProperty(speech, 'report', {
    get() {
      heard()
      return report
    },
  })
}

/** Samples one after another. */
export function joined(parts: readonly Float32Array[]): Float32Array {
  if (parts.length === 1) return parts[0]!
  const all = new Float32Array(parts.reduce((n, { length }) => n + length, 0))
  let at = 0
  for (const part of parts) {
    all.set(part, at)
    at += part.length
  }
  return all
}

/** Codes one after another. */
export const joinedCodes = (parts: readonly Codes[]): Codes => ({
  frames: parts.reduce((n, { frames }) => n + frames, 0),
  data: Uint16Array.from(parts.flatMap(({ data }) => [...data])),
})
