import { DeviceError } from '../../errors.ts'
import { untilAborted } from '../abort.ts'

/** Errors raised on the GPU, brought to the calls they belong to. */
export interface Faults {
  /** Throws when the device is lost or disposed of. */
  check(): void
  /** Does `work` between error scopes. `error` tells what that raised, and never rejects. */
  watch<A>(where: string, work: () => A): Watched<A>
  /** Does `work` between error scopes, up to its first await, and throws what that raised. Costs a round trip. */
  scoped<A>(where: string, work: () => Promise<A>): Promise<A>
  /** How many errors no scope caught so far, for `during`. */
  mark(): number
  /**
   * Settles as a promise of the GPU's does, but rejects as soon as the device is lost or disposed of, an error that no
   * scope catches is raised (or was since `mark`), or the signal is aborted.
   */
  during<A>(work: Promise<A>, signal?: AbortSignal, mark?: number): Promise<A>
  /** From here on everything is refused, and what is pending rejects. */
  close(): void
  readonly lost: Promise<string>
}

export interface Watched<A> {
  readonly result: A
  readonly error: Promise<DeviceError | undefined>
}

const LOSS_MS = 50 // promises of a lost device may reject before its loss is told

export function faults(gpu: GPUDevice): Faults {
  const inFlight = new Set<(error: DeviceError) => void>()
  let gone: DeviceError | undefined
  let raised = 0
  let last: DeviceError | undefined

  const raise = (error: DeviceError): void => {
    for (const reject of inFlight) reject(error)
  }
  const onError = (event: Event): void => {
    last = toError('webgpu', (event as GPUUncapturedErrorEvent).error)
    raised++
    raise(last)
  }
  gpu.addEventListener('uncapturederror', onError)
  const lost = gpu.lost.then(({ reason, message }) => {
    if (gone) return new Promise<string>(() => {}) // disposed of: nobody's loss
    gone = new DeviceError(
      'lost',
      `webgpu: the device is lost (${reason || 'unknown'}): ${message || 'no message'}; recover() opens it again`,
    )
    raise(gone)
    return gone.message
  })

  const pop = async (where: string): Promise<DeviceError | undefined> => {
    const scopes = [gpu.popErrorScope(), gpu.popErrorScope()]
    try {
      const [memory, validation] = await Promise.all(scopes)
      const error = memory ?? validation
      return error ? toError(where, error) : undefined
    } catch {
      return gone // a lost device pops nothing
    }
  }

  /** What a promise of the GPU's rejected with, as one of our errors. */
  const explain = async (error: unknown): Promise<DeviceError> => {
    if (gone) return gone
    if (error instanceof DeviceError) return error
    await Promise.race([lost, new Promise((resolve) => setTimeout(resolve, LOSS_MS))])
    return gone ?? new DeviceError('validation', `webgpu: ${(error as Error).message || error}`, { cause: error })
  }

  const faults: Faults = {
    check() {
      if (gone) throw gone
    },
    watch(where, work) {
      faults.check()
      gpu.pushErrorScope('validation')
      gpu.pushErrorScope('out-of-memory') // inside: an allocation that fails raises this alone
      try {
        return { result: work(), error: pop(where) }
      } catch (error) {
        pop(where)
        throw error
      }
    },
    async scoped(where, work) {
      const { result, error } = faults.watch(where, work)
      const [value, found] = await Promise.all([result, error])
      if (found) throw gone ?? found
      return value
    },
    mark: () => raised,
    during<A>(work: Promise<A>, signal?: AbortSignal, mark = raised) {
      const ended = new Promise<A>((resolve, reject) => {
        inFlight.add(reject)
        work.then(resolve, async (error) => reject(await explain(error))).finally(() => inFlight.delete(reject))
        if (gone) reject(gone)
        else if (raised > mark) reject(last)
      })
      return untilAborted(ended, signal)
    },
    close() {
      gpu.removeEventListener('uncapturederror', onError)
      gone ??= new DeviceError('disposed', 'webgpu: the device was disposed of; open another')
      raise(gone)
    },
    lost,
  }
  return faults
}

function toError(where: string, error: GPUError): DeviceError {
  const memory = error.constructor.name === 'GPUOutOfMemoryError'
  const message = error.message.split('\n')[0]
  return memory
    ? new DeviceError(
        'memory',
        `${where}: the device has not enough memory: ${message}; use a smaller model or fewer tokens`,
      )
    : new DeviceError('validation', `${where}: ${message}`)
}
