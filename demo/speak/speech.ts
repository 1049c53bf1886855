import { signal } from '@preact/signals'
import { encodeWav, type SayOptions } from '../../src/index.ts'
import { call, callback, engine, isAbort, messageOf } from '../client.ts'
import type { SayReply } from '../engine/engine.ts'
import { transferOf } from '../state.ts'
import { save } from '../ui/save.ts'
import { type Command, openPlayer, type Player, type Report } from './player.ts'

// The speech that is made, shown and heard; there is one at a time.

export const emotions = ['happiness', 'sadness', 'disgust', 'fear', 'surprise', 'anger', 'other', 'neutral'] as const
export type Emotion = (typeof emotions)[number]

export interface Settings {
  readonly language: string
  readonly voice: number
  readonly rate: number
  readonly pitch: number
  readonly cfg: number
  readonly seed: number
  /** Shares; undefined: as the model speaks by itself. */
  readonly emotion: Readonly<Record<Emotion, number>> | undefined
}

export const defaults: Settings = {
  ...{ language: 'en-us', voice: 0, rate: 15, pitch: 20, cfg: 2, seed: 1, emotion: undefined },
}
/** Upstream's own shares. */
export const defaultEmotion: Readonly<Record<Emotion, number>> = {
  ...{
    happiness: 0.31,
    sadness: 0.03,
    disgust: 0.03,
    fear: 0.03,
    surprise: 0.03,
    anger: 0.03,
    other: 0.26,
    neutral: 0.31,
  },
}

export const words = signal('The verdict is billing.')
export const settings = signal<Settings>(defaults)

export type State =
  | { readonly is: 'idle' }
  | { readonly is: 'speaking' }
  | { readonly is: 'failed'; readonly error: string }
  | { readonly is: 'done'; readonly report: SayReply }

export const state = signal<State>({ is: 'idle' })
/** What is said just now, or was said last. */
export const said = signal('')
export const chunks = signal<readonly Float32Array[]>([])
export const position = signal<Report>({ sample: 0, playing: false })

let making = new AbortController()
let player: Promise<Player> | undefined

export const optionsOf = ({ language, voice, rate, pitch, cfg, seed, emotion }: Settings): SayOptions => ({
  ...{ language, voice, speakingRate: rate, pitchStd: pitch, cfgScale: cfg, emotion, sampling: { seed } },
})

/** Of the codec, and so of the player. */
export const SAMPLE_RATE = 44100

/** Opens the player when it is first wanted, and again where that failed. */
async function ready(): Promise<void> {
  player ??= openPlayer(SAMPLE_RATE, (report) => {
    position.value = report
  })
  try {
    await player
  } catch (error) {
    player = undefined
    throw error
  }
}

const send = (command: Command): void => void player?.then((opened) => opened.send(command))

/** Says a text; what was said before is stopped and forgotten. To be called by a click or a key. */
export async function say(text: string): Promise<void> {
  stop()
  making = new AbortController()
  const { signal } = making
  state.value = { is: 'speaking' }
  said.value = text
  chunks.value = []
  try {
    await ready()
    if (signal.aborted) return
    send({ do: 'clear' })
    send({ do: 'play' })
    const onChunk = callback((samples: Float32Array<ArrayBuffer>) => {
      if (signal.aborted) return
      chunks.value = [...chunks.value, samples]
      send({ do: 'add', samples })
    })
    const options = optionsOf(settings.value)
    const report = await call(signal, (id) => engine.say(id, text, options, onChunk, transferOf('voice')))
    send({ do: 'complete' })
    state.value = { is: 'done', report }
  } catch (error) {
    if (!signal.aborted) state.value = isAbort(error) ? { is: 'idle' } : { is: 'failed', error: messageOf(error) }
  }
}

/** Silent at once, and the work ends too. */
export function stop(): void {
  making.abort(new DOMException('stopped', 'AbortError'))
  send({ do: 'pause' })
  send({ do: 'complete' })
  if (state.value.is === 'speaking') state.value = { is: 'idle' }
}

export const length = (): number => chunks.value.reduce((n, { length }) => n + length, 0)

export function playOrPause(): void {
  const { playing, sample } = position.value
  if (!playing && sample >= length()) send({ do: 'seek', sample: 0 })
  send({ do: playing ? 'pause' : 'play' })
}

export const seek = (sample: number): void => send({ do: 'seek', sample })

export function download(): void {
  const samples = new Float32Array(length())
  let at = 0
  for (const chunk of chunks.value) {
    samples.set(chunk, at)
    at += chunk.length
  }
  save(new Blob([encodeWav(samples, SAMPLE_RATE) as Uint8Array<ArrayBuffer>], { type: 'audio/wav' }), 'speech.wav')
}
