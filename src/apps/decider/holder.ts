import { untilAborted } from '../../device/abort.ts'
import type { Device } from '../../device/device.ts'
import { DeviceError } from '../../errors.ts'
import type { Model } from './model.ts'
import type { Scorer } from './scorer.ts'

/** A model on a device that it can leave for another. */
export interface Holder extends Scorer {
  /** Where the model is; while it is loaded again, where it was. */
  readonly device: Device
  recover(device?: Device): Promise<void>
  dispose(): Promise<void>
}

export type Load = (device: Device, signal: AbortSignal | undefined) => Promise<Model>

interface Call {
  readonly abort: AbortController
  readonly done: Promise<unknown>
}

/** Loads a model and keeps what loads it again. */
export async function holdModel(first: Device, load: Load, signal?: AbortSignal): Promise<Holder> {
  const disposal = new AbortController()
  const calls = new Set<Call>()
  let device = first
  let opened: Device | undefined // by `recover`, so that it is ours to dispose of
  let model = Promise.resolve(await load(device, signal)) // rejected after a reload that failed
  let reloading: Promise<Model> | undefined
  let disposing: Promise<void> | undefined

  /** Rejects the calls in progress, and resolves when none of them uses the model any more. */
  async function stop(reason: DeviceError): Promise<void> {
    const stopped = [...calls]
    for (const { abort } of stopped) abort.abort(reason)
    await Promise.allSettled(stopped.map(({ done }) => done))
  }

  const score: Scorer['score'] = async (rows, { signal } = {}) => {
    const abort = new AbortController() // one per call: AbortSignal.any would tie every call to a signal that lives on
    const forward = (): void => abort.abort(signal?.reason)
    signal?.addEventListener('abort', forward)
    if (signal?.aborted) forward()
    const done = untilAborted(model, abort.signal).then((loaded) => loaded.score(rows, { signal: abort.signal }))
    const call = { abort, done }
    calls.add(call)
    try {
      return await done
    } finally {
      calls.delete(call)
      signal?.removeEventListener('abort', forward)
    }
  }

  /** Leaves the device and loads on another. The old model goes first: there may not be room for two. */
  async function reload(next: Device | undefined, old: Promise<Model>): Promise<Model> {
    try {
      await stop(new DeviceError('lost', 'recover: the model is loaded again and this call is lost; make it again'))
      await release(old)
      const target = next ?? (await device.reopen())
      const loaded = await load(target, disposal.signal).catch(async (error) => {
        if (target !== next) await target.dispose()
        throw error
      })
      if (target !== opened) {
        await opened?.dispose()
        opened = target === next ? undefined : target
      }
      device = target
      return loaded
    } finally {
      reloading = undefined
    }
  }

  return {
    get device() {
      return device
    },
    score,
    async recover(next) {
      disposal.signal.throwIfAborted()
      if (!reloading) {
        reloading = reload(next, model)
        model = reloading // calls made from now on wait for it
        model.catch(() => {}) // every call tells it
      }
      await reloading
    },
    dispose() {
      disposing ??= (async () => {
        const reason = new DeviceError('disposed', 'decide: the model was disposed of; load it again')
        disposal.abort(reason)
        await stop(reason)
        await release(model)
        await opened?.dispose()
      })()
      return disposing
    },
  }
}

const release = (model: Promise<Model>): Promise<void> =>
  model.then(
    (loaded) => loaded.dispose(),
    () => {},
  )
