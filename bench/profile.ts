import type { Profile, ProfiledDispatch } from '../src/device/device.ts'
import type { Row } from './measure.ts'

export type KernelClass = 'gemm' | 'delta' | 'attention' | 'other'

export function classOf(kernel: string): KernelClass {
  if (kernel.startsWith('linear')) return 'gemm'
  if (kernel.startsWith('delta')) return 'delta'
  if (kernel.startsWith('attention')) return 'attention'
  return 'other'
}

export const sumMs = (dispatches: readonly ProfiledDispatch[]): number => dispatches.reduce((sum, d) => sum + d.ms, 0)

/** The profiles of one request's runs as one. */
export const together = (runs: readonly Profile[]): Profile => ({
  dispatches: runs.flatMap(({ dispatches }) => dispatches),
  submits: runs.reduce((n, { submits }) => n + submits, 0),
  encodeMs: runs.reduce((ms, { encodeMs }) => ms + encodeMs, 0),
  spanMs: runs.reduce((ms, { spanMs }) => ms + spanMs, 0),
  totalMs: runs.reduce((ms, { totalMs }) => ms + totalMs, 0),
})

/** Of several profiles of the same work the one whose kernels take the median time. */
export function typical(profiles: readonly Profile[]): Profile {
  const sorted = [...profiles].sort((a, b) => sumMs(a.dispatches) - sumMs(b.dispatches))
  return sorted[Math.floor(sorted.length / 2)]!
}

/** GPU time by class of kernel. */
export function classMs({ dispatches }: Profile): Record<`${KernelClass}Ms`, number> {
  const ms = { gemmMs: 0, deltaMs: 0, attentionMs: 0, otherMs: 0 }
  for (const d of dispatches) ms[`${classOf(d.kernel)}Ms`] += d.ms
  return ms
}

/** Speeds that a machine reaches, to compare with. */
export interface Peaks {
  readonly bytesPerMs?: number | undefined
  readonly flopsPerMs?: number | undefined
}

/**
 * One row per kernel and size of its work: time, FLOP/s, bytes/s, and the share of the time that the larger of its two
 * bounds needs. Work is `Kernel.cost`, so bytes are what has to move at least.
 */
export function byKernel({ dispatches }: Profile, { bytesPerMs = 0, flopsPerMs = 0 }: Peaks = {}): Row[] {
  const groups = new Map<string, ProfiledDispatch[]>()
  for (const d of dispatches) {
    const key = `${d.kernel} ${d.flops} ${d.bytes}`
    groups.set(key, [...(groups.get(key) ?? []), d])
  }
  return [...groups.values()]
    .map((group) => {
      const { kernel, flops, bytes } = group[0]!
      const ms = sumMs(group) / group.length
      const bound = Math.max(bytesPerMs ? bytes / bytesPerMs : 0, flopsPerMs ? flops / flopsPerMs : 0)
      return {
        kernel,
        times: group.length,
        totalMs: sumMs(group),
        ms,
        gflops: flops / 1e9,
        megabytes: bytes / 1e6,
        tflopsPerSecond: flops / ms / 1e9,
        gigabytesPerSecond: bytes / ms / 1e6,
        ...(bound > 0 && { ofBound: bound / ms }),
      }
    })
    .sort((a, b) => b.totalMs - a.totalMs)
}
