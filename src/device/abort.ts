/** Settles as `work` does, or rejects with the signal's reason as soon as it is aborted; the work itself goes on. */
export function untilAborted<A>(work: Promise<A>, signal: AbortSignal | undefined): Promise<A> {
  if (!signal) return work
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort)
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}
