import type { DacSession } from '../../models/dac/session.ts'
import { CODEBOOKS } from '../../models/zonos/config.ts'
import type { Codes } from '../../models/zonos/delay.ts'
import type { SpeechOptions, Spoken } from '../../models/zonos/session.ts'
import { channel } from './channel.ts'
import { type Ended, loopWatch, MOST_QUIET } from './guards.ts'
import { joined } from './speech.ts'

/** How a piece is said. */
export interface Saying {
  /** Lets the language model go. */
  readonly generate: (options: SpeechOptions) => Promise<Spoken>
  /** Frames that it is given, and tells first. */
  readonly given: number
  /** How it ended where the language model made all frames that it may. */
  readonly limit: 'length' | 'overlong'
  /** Fewer frames than these before the end are no speech. */
  readonly least: number
  readonly codec: DacSession
  /** Frames that were made before, as far as the codec hears them. The last `owed` of them were not handed out yet. */
  readonly context: Codes
  readonly owed: number
  /** Frames that the codec hears ahead. */
  readonly right: number
  /** The codes of so many quiet frames. */
  readonly quiet: (frames: number) => Promise<Codes>
  readonly isQuiet: (frame: Float32Array) => boolean
  readonly put: (samples: Float32Array) => void
  readonly signal: AbortSignal
}

export interface Said {
  /** What was handed out behind what was owed. Nothing at all where there was no sound, but for the caller's own limit. */
  readonly codes: Codes
  readonly ended: Ended
  /** Quiet frames at the end of `codes`. */
  readonly quiet: number
}

/** Frames of the first chunk that the codec decodes: 93 ms. */
export const FIRST = 8
/** Each chunk may be half as long again as the one that is heard meanwhile, so that at 1.5 × real time none is late. */
const GROWTH = 1.5
const LARGEST = 128
/** Seconds of quiet that may stay at an end: what is soft there is not cut off. */
const KEPT = 0.25

/**
 * Says a piece: the codec decodes while the language model goes on. Which frames are decoded together depends on their
 * number alone, so the same codes give the same samples. Quiet is handed out when sound follows, or the end: what is too
 * long can be cut.
 */
export async function sayPiece(saying: Saying): Promise<Said> {
  const { codec, context, owed, given, put } = saying
  const { hop, sampleRate } = codec.config
  const stopped = new AbortController()
  const frames = channel<Uint16Array>()
  const codes: Uint16Array[] = []
  let ended = 'eos' as Ended
  const stop = (how: Ended): void => {
    ended = how
    frames.close()
    stopped.abort()
  }

  const isLoop = loopWatch()
  let told = 0
  const generated = saying
    .generate({
      signal: AbortSignal.any([saying.signal, stopped.signal]),
      onFrames({ frames: count, data }) {
        for (let i = 0; i < count && !stopped.signal.aborted; i++) {
          if (told++ < given) continue
          const frame = data.slice(i * CODEBOOKS, (i + 1) * CODEBOOKS)
          if (isLoop(frame)) stop('loop')
          else frames.push(frame)
        }
      },
    })
    .then(
      (spoken) => {
        if (!stopped.signal.aborted) ended = spoken.ended === 'length' ? saying.limit : 'eos'
        frames.close()
      },
      (cause: unknown) => frames.close({ cause }),
    )

  let until = Number.POSITIVE_INFINITY // frames of the stream that are handed out
  async function* chunks(): AsyncGenerator<number[]> {
    const chunk = [context.data]
    let [size, due] = [FIRST, FIRST + saying.right]
    const taken = (more: Uint16Array[] = []): number[] => [...chunk.splice(0), ...more].flatMap((part) => [...part])
    for await (const frame of frames) {
      chunk.push(frame)
      if (codes.push(frame) < due) continue
      yield taken()
      size = Math.min(LARGEST, Math.floor(size * GROWTH))
      due += size
    }
    const nothing = ended === 'eos' && codes.length < saying.least
    until = nothing ? 0 : context.frames + codes.length
    yield taken([(await saying.quiet(saying.right)).data])
  }

  let at = 0 // frame of the stream
  const held: Float32Array[] = [] // what is owed, and quiet
  let quiet = 0 // frames of this piece in it
  let sounded = false
  try {
    for await (const wave of codec.stream(chunks(), { signal: saying.signal })) {
      const ready: Float32Array[] = []
      for (let from = 0; from < wave.length && at < until; from += hop, at++) {
        if (at < context.frames - owed) continue
        const frame = wave.slice(from, from + hop)
        const own = at >= context.frames
        if (own && !saying.isQuiet(frame)) {
          ready.push(...held.splice(0), frame)
          quiet = 0
          sounded = true
          continue
        }
        held.push(frame)
        if (own) quiet++
        if (quiet <= (MOST_QUIET * sampleRate) / hop) continue
        stop('silence')
        until = at + 1
      }
      if (ready.length > 0) put(joined(ready))
      if (at >= until) break
    }
  } finally {
    stopped.abort()
    await generated
  }
  if (!sounded && ended !== 'length') return { codes: { frames: 0, data: new Uint16Array() }, ended, quiet: 0 }
  const kept = sounded ? Math.min(quiet, Math.floor((KEPT * sampleRate) / hop)) : quiet
  if (kept > 0) put(joined(held.slice(0, held.length - quiet + kept)))
  const handed = codes.slice(0, at - context.frames - quiet + kept)
  return { codes: { frames: handed.length, data: Uint16Array.from(handed.flatMap((f) => [...f])) }, ended, quiet: kept }
}
