import { createTts } from '../../../src/apps/tts/tts.ts'
import type { Voice } from '../../../src/apps/tts/speak.ts'
import { cpuDevice } from '../../../src/device/cpu.ts'
import type { DacConfig } from '../../../src/models/dac/config.ts'
import type { DacSession } from '../../../src/models/dac/session.ts'
import { CODEBOOKS, PHONEMES } from '../../../src/models/zonos/config.ts'
import type { Codes } from '../../../src/models/zonos/delay.ts'
import type { Speech } from '../../../src/models/zonos/request.ts'
import type { SpeechOptions, Spoken, ZonosSession } from '../../../src/models/zonos/session.ts'
import type { Tts } from '../../../src/index.ts'

export const HOP = 512
/** Frames that a decoder of 44.1 kHz hears ahead. */
export const RIGHT = 10
export const FRAMES_PER_SECOND = 44100 / HOP

/** What a row of codes is made of: the first code of each frame. 0 is silence, n sounds at n / 1024. */
export interface Row {
  readonly frames: readonly number[]
  /** undefined: by itself, where it has no more frames than may be. */
  readonly ended?: 'eos' | 'length'
}

/** Speech of n frames, in which nothing repeats. */
export const speech = (n: number, from = 1): number[] => Array.from({ length: n }, (_, i) => 100 + ((from + i) % 900))
export const silence = (n: number): number[] => Array(n).fill(0)

export interface FakeVoice {
  readonly tts: Tts
  /** What the language model was asked to say, call by call. */
  readonly asked: Speech[]
}

const decoder = { channels: 16, strides: [8, 8, 4, 2] }
const codebooks = { count: CODEBOOKS, size: 1024, width: 8 }
const config: DacConfig = { sampleRate: 44100, hop: HOP, latent: 16, encoder: decoder, decoder, codebooks }

/** A codec whose frames sound as loud as their first code is high. */
function fakeCodec(): DacSession {
  const decode = (codes: ArrayLike<number>): Float32Array => {
    const sample = (i: number): number => codes[Math.floor(i / HOP) * CODEBOOKS]! / 1024
    return Float32Array.from({ length: (codes.length / CODEBOOKS) * HOP }, (_, i) => sample(i))
  }
  return {
    config,
    decode: async (codes) => decode(codes),
    async *stream(source) {
      const codes: number[] = []
      let done = 0
      for await (const more of source) {
        codes.push(...Array.from(more))
        const ready = Math.max(done, codes.length / CODEBOOKS - RIGHT)
        if (ready > done) yield decode(codes.slice(done * CODEBOOKS, ready * CODEBOOKS))
        done = ready
      }
      yield decode(codes.slice(done * CODEBOOKS))
    },
    encode: async (audio) => new Uint32Array(Math.ceil(audio.length / HOP) * CODEBOOKS),
    programs: () => Promise.reject(new Error('a fake codec has no programs')),
  }
}

/** A voice without a model: `rows` says what is made, by the number of the call and what was asked. */
export function fakeVoice(rows: (call: number, asked: Speech) => Row, { trainedSeconds = 30 } = {}): FakeVoice {
  const asked: Speech[] = []
  const language = {
    config: { hidden: 1, conditioners: [], trainedSeconds },
    async generate(asking: Speech, { signal, onFrames }: SpeechOptions = {}): Promise<Spoken> {
      const { frames, ended } = rows(asked.push(asking) - 1, asking)
      const given = asking.audioPrefix ?? { frames: 0, data: new Uint16Array() }
      const made = frames.slice(0, asking.maxFrames)
      onFrames?.(given)
      for (const first of made) {
        await new Promise((resolve) => setImmediate(resolve))
        signal?.throwIfAborted()
        onFrames?.(codesOf([first]))
      }
      const codes = {
        frames: given.frames + made.length,
        data: Uint16Array.from([...given.data, ...codesOf(made).data]),
      }
      return { codes, ended: ended ?? (made.length < frames.length ? 'length' : 'eos') }
    },
  } as Pick<ZonosSession, 'generate'> as ZonosSession
  const phonemes = { name: 'espeak', kind: 'phonemes', unconditional: false } as const
  const ids = Float32Array.from({ length: PHONEMES }, (_, id) => id) // so that a prefix shows them
  const weights = { conditioners: [{ config: phonemes, weight: { data: ids } }] } as unknown as Voice['weights']
  const phonemizer = { phonemes: (text: string) => text }
  const voice = { language, weights, codec: fakeCodec() }
  return {
    tts: createTts(
      voice,
      cpuDevice('test'),
      async () => phonemizer,
      () => {},
    ),
    asked,
  }
}

export const codesOf = (firsts: readonly number[]): Codes => ({
  frames: firsts.length,
  data: Uint16Array.from(firsts.flatMap((first) => [first, ...Array(CODEBOOKS - 1).fill(0)])),
})
