import type { Transfer } from '../engine/sources.ts'

const WINDOW_MS = 4000

/** Bytes a second over the last seconds of one transfer. */
export function meter(now: () => number = () => performance.now()): (transfer: Transfer) => number {
  let what = ''
  let samples: { at: number; bytes: number }[] = []
  return (transfer) => {
    if (transfer.what !== what) samples = []
    what = transfer.what
    samples = [...samples.filter(({ at }) => now() - at < WINDOW_MS), { at: now(), bytes: transfer.loadedBytes }]
    const [first, last] = [samples[0]!, samples.at(-1)!]
    return last.at > first.at ? ((last.bytes - first.bytes) / (last.at - first.at)) * 1000 : 0
  }
}
