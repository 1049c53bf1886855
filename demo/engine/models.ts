import type { Decider, Device, Files, Progress, Tts } from '../../src/index.ts'
import { type Watch, watched } from './devices.ts'
import type { Transfer } from './sources.ts'

/** A model that the page can load: a URL, `hf:owner/name`, or files that were dropped. */
export interface ModelRef {
  readonly kind: 'decider' | 'voice'
  readonly title: string
  readonly where: string | Files
  /** Of a voice: its codec. */
  readonly codec?: string | Files
}

export interface Loaded<Model extends Decider | Tts> {
  readonly model: Model
  readonly watch: Watch
  readonly loadMs: number
}

export type OnTransfer = (transfer: Transfer) => void

/** Loads onto the device; `onTransfer` hears of the download first, and then of the way onto the device. */
export async function timed<Model extends Decider | Tts>(
  device: Device,
  onTransfer: OnTransfer,
  load: (options: { device: Device; onProgress: (progress: Progress) => void }) => Promise<Model>,
): Promise<Loaded<Model>> {
  const begin = performance.now()
  const watch = watched(device)
  const onProgress = ({ loadedBytes, totalBytes }: Progress): void =>
    onTransfer({ what: 'onto the device', loadedBytes, totalBytes })
  const model = await load({ device: watch.device, onProgress })
  return { model, watch, loadMs: performance.now() - begin }
}

/** Something that is loaded when it is first wanted and kept. */
export interface Slot<A> {
  get(load: (signal: AbortSignal) => Promise<A>): Promise<A>
  /** Forgets it, without a word to a device that is gone. */
  drop(): void
  /** Stops loading it, and disposes of it. */
  unload(): Promise<void>
}

export function slot<A extends { readonly model: AsyncDisposable }>(): Slot<A> {
  let kept: { readonly abort: AbortController; readonly loading: Promise<A> } | undefined
  return {
    get(load) {
      if (kept) return kept.loading
      const abort = new AbortController()
      const mine = { abort, loading: load(abort.signal) }
      kept = mine
      mine.loading.catch(() => {
        if (kept === mine) kept = undefined
      })
      return mine.loading
    },
    drop() {
      kept = undefined
    },
    async unload() {
      const { abort, loading } = kept ?? {}
      kept = undefined
      abort?.abort(new DOMException('another model or device was chosen', 'AbortError'))
      await loading?.then(({ model }) => model[Symbol.asyncDispose]()).catch(() => {}) // was never there
    },
  }
}
