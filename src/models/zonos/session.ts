import type { Device, Profile, Program } from '../../device/device.ts'
import { recordedProgram } from '../../device/recorded.ts'
import { serial } from '../../device/serial.ts'
import { WeightsError } from '../../errors.ts'
import type { Target } from '../../graph/target.ts'
import { variantProbes } from '../../kernels/lib/probes.ts'
import { UNKNOWN } from '../../kernels/sample_codes.ts'
import { type Phase, REPORTED, speechGraph } from './backbone.ts'
import { CODEBOOKS, type ZonosConfig } from './config.ts'
import { type Codes, delayedGrid, framesAfter, gridWidth, lastColumn, undelayed } from './delay.ts'
import { makeMemory } from './memory.ts'
import { type Request, requestOf, type Speech } from './request.ts'
import { capacityOf, firstColumn, runOf } from './run.ts'
import type { ZonosWeights } from './weights.ts'

export interface SpeechOptions {
  readonly signal?: AbortSignal | undefined
  /** Frames as they become final: in order, without gaps, those of the audio prefix first. */
  readonly onFrames?: ((codes: Codes) => void) | undefined
  /** Of the prefill, then of every column. */
  readonly onProfile?: ((profile: Profile) => void) | undefined
}

export interface Spoken {
  /** Those of the audio prefix, then the new ones. */
  readonly codes: Codes
  /** By itself, or because `maxFrames` were made. */
  readonly ended: 'eos' | 'length'
}

/** A loaded Zonos transformer with its memory on one device. */
export interface ZonosSession {
  readonly config: ZonosConfig
  /** Rows of codes are made one after another. */
  generate(speech: Speech, options?: SpeechOptions): Promise<Spoken>
  /** The recorded program of a phase: dispatches, the most tokens of a run. */
  program(phase: Phase): Promise<Program>
  dispose(): void
}

/** Every how many columns codes are read back, and how many such readings may be under way while the GPU works on. */
export interface Pace {
  readonly every: number // at most REPORTED
  readonly ahead: number
}

/** A GPU works on while the host reads what it did; a CPU would only do in vain what comes after the end. */
const paceOf = ({ software }: Target): Pace => (software ? { every: 1, ahead: 0 } : { every: 8, ahead: 1 })

export function zonosSession(
  device: Device,
  c: ZonosConfig,
  w: ZonosWeights,
  { pace }: { readonly pace?: Pace } = {},
): ZonosSession {
  const memory = makeMemory(device, c)
  const queue = serial() // a row of codes is a series of runs: nobody else's run may come between
  const stateful = true
  const programs = Object.fromEntries(
    (['prefill', 'decode'] as const).map((phase) => [
      phase,
      recordedProgram(device, (target) => speechGraph(target, c, w, memory, phase), {
        probes: variantProbes,
        stateful,
      }),
    ]),
  ) as Record<Phase, ReturnType<typeof recordedProgram>>

  async function generate(request: Request, { signal, onFrames, onProfile }: SpeechOptions): Promise<Spoken> {
    const { given, wanted, prefixes } = request
    const width = gridWidth(given.frames, wanted)
    const grid = delayedGrid(given, wanted)
    memory.begin(grid, prefixes.length * capacityOf(request))
    let last = width
    let taken = 0 // columns that have been read
    let told = 0 // frames

    /** Takes what the run of column c reported. */
    const take = (c: number, report: Float32Array): void => {
      const from = Math.max(0, c + 1 - REPORTED)
      const columns = report.subarray((1 + REPORTED - (c + 1 - from)) * CODEBOOKS)
      if (columns.includes(UNKNOWN))
        throw new WeightsError(
          'format',
          `speech: no logit of column ${c} is a number; the checkpoint holds NaN or infinite weights, or weights of another model`,
        )
      grid.set(columns.subarray(0, (width - from) * CODEBOOKS), from * CODEBOOKS) // there is no column `width`
      last = lastColumn(width, report[0]!)
      taken = c
      const final = Math.min(framesAfter(last), Math.min(c, last) - CODEBOOKS + 1)
      if (final <= told) return
      onFrames?.(undelayed(grid, told, final))
      told = final
    }
    const run = async (phase: Phase, column: number, read: boolean): Promise<void> => {
      const { inputs, counts } = runOf(c, request, column)
      const { report } = await programs[phase].run(inputs, counts, { signal, read, onProfile })
      if (report) take(column, report)
    }

    const first = firstColumn(request)
    await run('prefill', first, true)
    const { every, ahead } = pace ?? paceOf(device.target)
    const reading: Promise<void>[] = []
    try {
      for (let c = first + 1; c <= width && taken < last; c++) {
        const due = (c - first) % every === 0 || c === width
        const made = run('decode', c, due)
        if (!due) await made
        else reading.push(made)
        made.catch(() => {}) // it is awaited below, unless an earlier one fails first
        while (reading.length > ahead) await reading.shift()
      }
      await Promise.all(reading)
    } finally {
      await Promise.allSettled(reading)
    }
    return { codes: undelayed(grid, 0, framesAfter(last)), ended: last < width ? 'eos' : 'length' }
  }

  return {
    config: c,
    program: (phase) => programs[phase].program(),
    async generate(speech, options = {}) {
      const request = requestOf(speech, c)
      return queue(() => generate(request, options), options.signal)
    },
    dispose: memory.dispose,
  }
}
