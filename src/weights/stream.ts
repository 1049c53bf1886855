import type { Device } from '../device/device.ts'
import { ahead, planChunks } from './chunks.ts'
import type { StoredTensor } from './safetensors.ts'
import type { Sink } from './sinks.ts'
import type { Source } from './source.ts'

export interface Progress {
  readonly loadedBytes: number
  readonly totalBytes: number
  /** The tensor that was read last, by its stored name. */
  readonly tensor: string
}

export interface StreamOptions {
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((progress: Progress) => void) | undefined
}

const flushBytes = 64 * 2 ** 20
/** Reads in flight: latency is what a network costs. */
const remoteReads = 4
const localReads = 2

/** Reads tensors once, in file order, a chunk at a time, into their sinks. */
export async function streamInto(
  sinks: ReadonlyMap<StoredTensor, readonly Sink[]>,
  source: Source,
  device: Pick<Device, 'flush'>,
  { signal, onProgress }: StreamOptions,
): Promise<{ readonly bytes: number; readonly inexact: number }> {
  const used = [...sinks].filter(([, sinks]) => sinks.length > 0).map(([stored]) => stored)
  const totalBytes = used.reduce((sum, t) => sum + t.end - t.begin, 0)
  await source.prepare?.([...new Set(used.map((t) => t.file))], signal)
  let [loadedBytes, inexact, unflushed] = [0, 0, 0]
  const reads = planChunks(used).map((chunk) => async () => {
    signal?.throwIfAborted()
    return { chunk, bytes: await source.read(chunk.file, chunk.begin, chunk.end, signal) }
  })
  for await (const { chunk, bytes } of ahead(reads, source.remote ? remoteReads : localReads)) {
    signal?.throwIfAborted()
    for (const piece of chunk.pieces) {
      const part = bytes.subarray(piece.at, piece.at + piece.bytes)
      for (const sink of sinks.get(piece.tensor)!) {
        const done = sink(part, piece.offset)
        inexact += done.inexact
        unflushed += done.written
      }
      loadedBytes += piece.bytes
    }
    if (unflushed >= flushBytes) {
      await device.flush()
      unflushed = 0
    }
    onProgress?.({ loadedBytes, totalBytes, tensor: chunk.pieces.at(-1)!.tensor.name })
  }
  await device.flush()
  signal?.throwIfAborted()
  return { bytes: loadedBytes, inexact }
}
