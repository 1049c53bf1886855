import type { Decider } from '../apps/decider/api.ts'
import { refuse } from '../apps/decider/refusal.ts'
import type { Scorer } from '../apps/decider/scorer.ts'
import { DeviceError, type RequestError } from '../errors.ts'

/** A scorer over a decider that is loaded again when its device is lost. */
export interface Reopening extends Scorer {
  /** Whether it answers. */
  readonly ready: boolean
}

/**
 * Loads the decider again as soon as its device is lost, and at the next call where that failed. Calls that were lost,
 * or come meanwhile, reject with RequestError 503. `onNews` hears what happens.
 */
export function reopening(decider: Decider, onNews: (line: string) => void): Reopening {
  let state: 'ready' | 'loading' | 'failed' = 'ready'

  function watch(): void {
    const { device } = decider
    void device.lost.then((reason) => device === decider.device && reopen(reason))
  }

  function reopen(reason: string): void {
    if (state === 'loading') return
    state = 'loading'
    onNews(`the device is lost (${reason}); the model is loaded again`)
    decider.recover().then(
      () => {
        state = 'ready'
        onNews(`the model is loaded again: ${decider.device.report.line}`)
        watch()
      },
      (error: Error) => {
        state = 'failed'
        onNews(`the model could not be loaded again: ${error.message}`)
      },
    )
  }

  watch()
  return {
    get ready() {
      return state === 'ready'
    },
    async score(rows, options) {
      if (state === 'failed') reopen('the last attempt failed')
      if (state !== 'ready') throw away()
      try {
        return await decider.score(rows, options)
      } catch (error) {
        if (!(error instanceof DeviceError && error.code === 'lost')) throw error
        reopen(error.message)
        throw away(error)
      }
    },
  }
}

const away = (cause?: DeviceError): RequestError =>
  refuse(503, 'the device was lost and the model is being loaded again; retry later', { cause })
