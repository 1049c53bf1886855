import type { Device } from '../src/device/device.ts'
import type { Result, Rounds } from './measure.ts'
import type { ShapeName } from './shapes.ts'

/** What a bench is told on the command line; each takes what concerns it. */
export interface BenchOptions extends Rounds {
  /** Skips what needs more tokens. */
  readonly limit: number
  readonly shapes: readonly ShapeName[]
  /** A checkpoint: a folder, a URL or hf:owner/name@revision. */
  readonly model: string
  readonly revision: string | undefined
  /** Prefill only: most tokens of a request's first run, the second and so on, the last for all that follow. */
  readonly runTokens: readonly number[] | undefined
  /** Kernels only: rows of the products; forces in turn every plan of an op whose name begins like `plan`. */
  readonly heights: readonly number[]
  readonly sweep: string | undefined
  readonly plan: string
  /** Kernels and tts: what torch_baseline.py wrote on this machine. */
  readonly baseline: string | undefined
  /** Tts only: a text of so many minutes too. */
  readonly minutes: number
  /** What the machine's multiplications reach, for shares of a bound. */
  readonly peakTflops: number | undefined
}

/** Runs on a device and says what it found; `note` tells people how far it is. */
export type Bench = (device: Device, options: BenchOptions, note: (line: string) => void) => Promise<Result>
