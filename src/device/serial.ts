/** A first-in first-out queue of asynchronous work. A failed task does not stop those behind it. */
export function serial(): <A>(task: () => Promise<A>, signal?: AbortSignal) => Promise<A> {
  let tail: Promise<unknown> = Promise.resolve()
  return (task, signal) => {
    const run = tail.then(() => {
      signal?.throwIfAborted()
      return task()
    })
    tail = run.catch(() => {})
    return run
  }
}
