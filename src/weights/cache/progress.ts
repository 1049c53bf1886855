/** Of one file that comes into the cache. */
export interface DownloadProgress {
  /** The source, and the file's path in it. */
  readonly source: string
  readonly file: string
  /** With what an earlier download has left. */
  readonly loadedBytes: number
  readonly totalBytes: number
  /** Of the last seconds; 0 until there is something to go by. */
  readonly bytesPerSecond: number
  /** At this rate; undefined while there is none. */
  readonly secondsLeft: number | undefined
}

const windowMs = 5000
const reportMs = 100

/** Counts bytes of a file and reports ten times a second, and at the end. */
export function meter(
  source: string,
  file: string,
  totalBytes: number,
  onProgress: ((progress: DownloadProgress) => void) | undefined,
) {
  let loadedBytes = 0
  let received = 0
  let reported = Number.NEGATIVE_INFINITY
  const samples: { at: number; received: number }[] = [{ at: performance.now(), received }]

  function report(now: number): void {
    reported = now
    while (samples.length > 1 && now - samples[0]!.at > windowMs) samples.shift()
    const [first] = samples
    const seconds = (now - first!.at) / 1000
    const bytesPerSecond = seconds > 0 ? (received - first!.received) / seconds : 0
    const secondsLeft = bytesPerSecond > 0 ? (totalBytes - loadedBytes) / bytesPerSecond : undefined
    samples.push({ at: now, received })
    onProgress?.({ source, file, loadedBytes, totalBytes, bytesPerSecond, secondsLeft })
  }
  return {
    /** Bytes that are there: out of the network, or out of an earlier download. */
    add(bytes: number, from: 'network' | 'store'): void {
      loadedBytes += bytes
      if (from === 'network') received += bytes
      const now = performance.now()
      if (now - reported >= reportMs || loadedBytes === totalBytes) report(now)
    },
  }
}
