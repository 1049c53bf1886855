import {
  type Decider,
  type Decision,
  type DeviceChoice,
  type Questions,
  readQuestions,
  type SayOptions,
  type Tts,
} from '../../src/index.ts'
import type { BenchmarkResult } from './benchmark.ts'
import { type DeviceInfo, type Opened, open } from './devices.ts'
import { type CachedModel, cachedModels, type KnownModel, knownModels, removeCached } from './sources.ts'
import { speak } from './speak.ts'
import type { Rounds } from './timing.ts'
import { withImage } from './image.ts'
import { type Loaded, type ModelRef, type OnTransfer, slot } from './models.ts'

export interface DecideRequest {
  readonly text: string
  /** As in a schema file. */
  readonly questions: unknown
  readonly image?: Blob | undefined
}

/** With a null where a model abstains. */
export type Verdict = Decision<Questions, null>

export interface DecideReply {
  readonly decision: Verdict
  readonly ms: number
  readonly dispatches: number
}

export interface SayReply {
  readonly phonemes: string
  readonly warnings: readonly string[]
  readonly ended: string
  readonly seconds: number
  readonly firstMs: number
  readonly totalMs: number
}

/** What the page asks of its worker. `call` names a call that `abort` may end. */
export interface Engine {
  /** Opens a device and leaves the one before; models are loaded again when they are next used. */
  open(choice: DeviceChoice): Promise<DeviceInfo>
  abort(call: number): void
  /** From now on the model of its kind. Resolves when it is on the device. */
  load(call: number, ref: ModelRef, onTransfer: OnTransfer): Promise<{ loadMs: number }>
  decide(call: number, request: DecideRequest, onTransfer: OnTransfer): Promise<DecideReply>
  say(
    call: number,
    text: string,
    options: SayOptions,
    onChunk: (samples: Float32Array<ArrayBuffer>) => void,
    onTransfer: OnTransfer,
  ): Promise<SayReply>
  benchmark(call: number, options: Rounds, onStep: (step: string) => void): Promise<BenchmarkResult>
  stored(): Promise<{ known: readonly KnownModel[]; cached: readonly CachedModel[] }>
  remove(name: string): Promise<void>
}

/** `transfer` hands a buffer over instead of copying it. */
export function createEngine(
  embedded: { readonly [kind in ModelRef['kind']]: ModelRef },
  transfer: (samples: Float32Array<ArrayBuffer>) => Float32Array<ArrayBuffer>,
): Engine {
  const calls = new Map<number, AbortController>()
  const models = { decider: slot<Loaded<Decider>>(), voice: slot<Loaded<Tts>>() }
  const refs: { [kind in ModelRef['kind']]: ModelRef } = { ...embedded }
  let choice: DeviceChoice = 'auto'
  let opened: Promise<Opened> | undefined

  async function call<A>(id: number, work: (signal: AbortSignal) => Promise<A>): Promise<A> {
    const controller = new AbortController()
    calls.set(id, controller)
    try {
      return await work(controller.signal)
    } finally {
      calls.delete(id)
    }
  }

  function device(): Promise<Opened> {
    if (opened) return opened
    const opening = open(choice)
    opened = opening
    const forget = (): void => {
      if (opened !== opening) return
      opened = undefined
      for (const each of Object.values(models)) each.drop()
    }
    opening.then(({ device }) => device.lost.then(forget), forget)
    return opening
  }

  // Loading outlives the call that began it: others wait for the same, and a keystroke is no reason to begin anew.
  async function decider(onTransfer: OnTransfer): Promise<Loaded<Decider>> {
    const { device: on } = await device()
    return models.decider.get(async (signal) =>
      (await import('./decider.ts')).loadDeciderOf(refs.decider, on, signal, paced(onTransfer)),
    )
  }
  async function voice(onTransfer: OnTransfer): Promise<Loaded<Tts>> {
    const { device: on } = await device()
    return models.voice.get(async (signal) =>
      (await import('./voice.ts')).loadVoiceOf(refs.voice, on, signal, paced(onTransfer)),
    )
  }

  return {
    async open(wanted) {
      const before = opened
      choice = wanted
      opened = undefined
      await Promise.all(Object.values(models).map((each) => each.unload()))
      await before?.then(({ device }) => device.dispose()).catch(() => {})
      return (await device()).info
    },
    abort(id) {
      calls.get(id)?.abort(new DOMException('the page asked for it no longer', 'AbortError'))
    },
    load: (id, ref, onTransfer) =>
      call(id, async (signal) => {
        const { kind } = ref
        await models[kind].unload()
        refs[kind] = ref
        const stop = (): void => void models[kind].unload()
        signal.addEventListener('abort', stop)
        try {
          const { loadMs } = await { decider, voice }[kind](onTransfer)
          return { loadMs }
        } catch (error) {
          if (refs[kind] === ref) refs[kind] = embedded[kind]
          throw error
        } finally {
          signal.removeEventListener('abort', stop)
        }
      }),
    decide: (id, { text, questions, image }, onTransfer) =>
      call(id, async (signal) => {
        const asked = readQuestions(questions)
        const { model, watch } = await decider(onTransfer)
        signal.throwIfAborted()
        const begin = performance.now()
        watch.begin()
        const decision = await model.decide(text, asked, withImage({ signal }, image))
        return { decision, ms: performance.now() - begin, dispatches: watch.dispatches() }
      }),
    say: (id, text, options, onChunk, onTransfer) =>
      call(id, async (signal) => {
        const { model: tts } = await voice(onTransfer)
        signal.throwIfAborted()
        const begin = performance.now()
        let firstMs = 0
        let seconds = 0
        const report = await speak(tts, text, { ...options, signal }, (samples) => {
          firstMs ||= performance.now() - begin
          seconds += samples.length / tts.sampleRate
          onChunk(transfer(samples))
        })
        return { ...report, seconds, firstMs, totalMs: performance.now() - begin }
      }),
    benchmark: (id, options, onStep) =>
      call(id, async (signal) => {
        const { device: on } = await device()
        const { runBenchmark } = await import('./benchmark.ts')
        return runBenchmark(on, refs.decider, options, { signal, onStep })
      }),
    stored: async () => ({ known: knownModels, cached: await cachedModels() }),
    remove: (name) => removeCached(name),
  }
}

const PACE_MS = 100

/** Ten reports a second, and the last one. */
function paced(report: OnTransfer): OnTransfer {
  let last = Number.NEGATIVE_INFINITY
  return (transfer) => {
    const now = performance.now()
    if (now - last < PACE_MS && transfer.loadedBytes < transfer.totalBytes) return
    last = now
    report(transfer)
  }
}
