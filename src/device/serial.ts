import { untilAborted } from './abort.ts'

/**
 * A first-in first-out queue of asynchronous work. A failed task does not stop those behind it. One that is aborted
 * while it waits rejects at once and never starts; one that has started hears the signal by itself.
 */
export function serial(): <A>(task: () => Promise<A>, signal?: AbortSignal) => Promise<A> {
  let tail: Promise<void> = Promise.resolve()
  return (task, signal) => {
    const run = untilAborted(tail, signal).then(task)
    tail = Promise.allSettled([tail, run]).then(() => {}) // keeps no result alive
    return run
  }
}
