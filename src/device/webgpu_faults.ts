import { DeviceError } from '../errors.ts'

/** Errors raised on the GPU, brought to the calls they belong to. */
export interface Faults {
  /** Runs `work` with error scopes around it: what it raises is thrown. Costs a round trip. */
  scoped<A>(where: string, work: () => Promise<A>): Promise<A>
  /** Starts scopes around an allocation; an error is thrown by the next `check`. */
  watch<A>(where: string, work: () => A): A
  /** Throws what watched allocations raised, or that the device is lost or disposed of. */
  check(): Promise<void>
  /** Settles as `work` does, but rejects as soon as the device is lost or raises an error by itself. */
  during<A>(work: Promise<A>): Promise<A>
  /** From here on everything is refused. */
  close(): void
  readonly lost: Promise<string>
}

export function faults(gpu: GPUDevice): Faults {
  const watched: Promise<DeviceError | undefined>[] = []
  const inFlight = new Set<(error: DeviceError) => void>()
  let gone: DeviceError | undefined

  const raise = (error: DeviceError): void => {
    for (const reject of inFlight) reject(error)
  }
  const onError = (event: Event): void => {
    const { error } = event as GPUUncapturedErrorEvent
    raise(toError('webgpu', error))
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

  /** Out-of-memory lies inside validation: an allocation that fails raises the first alone. */
  const scope = <A>(where: string, work: () => A): { result: A; error: Promise<DeviceError | undefined> } => {
    gpu.pushErrorScope('validation')
    gpu.pushErrorScope('out-of-memory')
    try {
      const result = work()
      return { result, error: pop(where) }
    } catch (error) {
      pop(where)
      throw error
    }
  }
  const pop = (where: string): Promise<DeviceError | undefined> => {
    const errors = [gpu.popErrorScope(), gpu.popErrorScope()]
    return Promise.all(errors).then(
      ([memory, validation]) => {
        const error = memory ?? validation
        return error ? toError(where, error) : undefined
      },
      () => gone, // a lost device pops nothing
    )
  }

  const faults: Faults = {
    async scoped(where, work) {
      const { result, error } = scope(where, work)
      const [value, raised] = await faults.during(Promise.all([result, error]))
      if (raised) throw raised
      return value
    },
    watch(where, work) {
      if (gone) throw gone
      const { result, error } = scope(where, work)
      watched.push(error)
      return result
    },
    async check() {
      if (gone) throw gone
      const errors = await faults.during(Promise.all(watched.splice(0)))
      const first = errors.find((e) => e !== undefined)
      if (first) throw first
    },
    during(work) {
      return new Promise((resolve, reject) => {
        if (gone) return reject(gone)
        inFlight.add(reject)
        work.then(resolve, (error) => reject(gone ?? error)).finally(() => inFlight.delete(reject))
      })
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
