import type { Device, Profile } from '../src/device/device.ts'
import { Graph } from '../src/graph/graph.ts'
import { embedding } from '../src/kernels/embedding.ts'
import { hash } from '../src/kernels/fill_random.ts'
import type { Row as Request } from '../src/models/qwen3_5/schedule.ts'
import { type Session, type SessionOptions, textSession } from '../src/models/qwen3_5/session.ts'
import type { Bench } from './bench.ts'
import { type Case, interleave, origin, type Row } from './measure.ts'
import { byKernel, classMs, sumMs, together, typical } from './profile.ts'
import { randomModel } from './random_model.ts'
import { shape } from './shapes.ts'

interface Load {
  readonly rows: number
  readonly tokens: number
  /** Answers read from each row. */
  readonly slots: number
}

const loads: readonly Load[] = [
  { rows: 1, tokens: 64, slots: 1 },
  { rows: 1, tokens: 228, slots: 1 },
  { rows: 1, tokens: 228, slots: 3 },
  { rows: 1, tokens: 1024, slots: 1 },
  { rows: 1, tokens: 4096, slots: 1 },
  { rows: 32, tokens: 256, slots: 1 },
]

const PROFILES = 3

/**
 * Whole requests, from token ids to probabilities, on random weights of the published shapes, and what each spends its
 * time on. A profiled run has a pass for every dispatch, so kernel times come from it and the whole from runs without:
 * `restMs` is what is left of the whole after kernels and one round trip: encoding that nothing hides, gaps between
 * dispatches, work on the host.
 */
export const prefill: Bench = async (device, { shapes, limit, runTokens, warmups, runs }, note) => {
  const rounds = { warmups, runs }
  const roundTripMs = await roundTrip(device, runs)
  const rows: Row[] = []
  for (const name of shapes) {
    note(`${name}: filling weights`)
    const model = await randomModel(device, shape(name))
    const session = textSession(device, model.c, model.w, model.head)
    const answered = (requests: readonly Request[], onProfile?: (profile: Profile) => void) =>
      answer(session, requests, { runTokens, onProfile })
    const fitting = loads.filter(({ rows, tokens }) => rows * tokens <= limit)
    const peaks = new Map<Load, number>()
    for (const load of fitting) {
      await answered(requestsOf(session, load, 0)) // slots only grow, and loads grow: this one's own peak
      peaks.set(load, device.memory.keptBytes + device.memory.slotBytes)
    }
    const cases = fitting.map((load): Case => {
      const given = Array.from({ length: warmups + runs }, (_, i) => requestsOf(session, load, i + 1))
      let next = 0
      return { name: label(name, load), run: () => answered(given[next++]!) }
    })
    const timings = await interleave(cases, rounds)
    for (const [i, load] of fitting.entries()) {
      const timing = timings[i]!
      const profile = await profiled((seed, onProfile) => answered(requestsOf(session, load, seed), onProfile))
      const kernelsMs = sumMs(profile.dispatches)
      const flops = profile.dispatches.reduce((n, d) => n + d.flops, 0)
      rows.push({
        ...timing,
        dispatches: profile.dispatches.length,
        submits: profile.submits,
        encodeMs: profile.encodeMs,
        ...classMs(profile),
        gapsMs: profile.spanMs - kernelsMs, // with a pass and two timestamps for each dispatch
        roundTripMs,
        restMs: timing.medianMs - kernelsMs - roundTripMs,
        tflopsPerSecond: flops / timing.medianMs / 1e9,
        peakBytes: peaks.get(load)!,
        pipelines: device.memory.pipelines,
        kernels: byKernel(profile),
      })
      note(`${timing.case}: ${timing.medianMs.toFixed(2)} ms`)
    }
    session.dispose()
    model.release()
  }
  return { bench: 'prefill', ...origin(device), checkpoint: 'random weights', ...rounds, rows }
}

const label = (model: string, { rows, tokens, slots }: Load): string =>
  `${model}, ${rows > 1 ? `${rows} x ` : ''}${tokens} tokens${slots > 1 ? `, ${slots} answers` : ''}`

/** Rows of a load, with ids of the seed's own. */
function requestsOf(session: Session, load: Load, seed: number): Request[] {
  const { vocabulary } = session.config
  return Array.from({ length: load.rows }, (_, row) => ({
    ids: Array.from({ length: load.tokens }, (_, i) => hash(hash(seed * 64 + row) + i) % vocabulary),
    slots: Array.from({ length: load.slots }, (_, i) => load.tokens - 1 - 10 * (load.slots - 1 - i)),
  }))
}

/** Probabilities of every answer. */
async function answer(session: Session, requests: readonly Request[], options: SessionOptions): Promise<void> {
  const logits = await session.logits(requests, options)
  for (const slots of logits) for (const values of slots) softmax(values)
}

function softmax(logits: Float32Array): Float64Array {
  const most = logits.reduce((a, b) => Math.max(a, b))
  const e = Float64Array.from(logits, (x) => Math.exp(x - most))
  const sum = e.reduce((a, b) => a + b)
  return e.map((x) => x / sum)
}

async function profiled(run: (seed: number, onProfile: (p: Profile) => void) => Promise<void>): Promise<Profile> {
  const profiles: Profile[] = []
  for (let i = 0; i < PROFILES; i++) {
    const runs: Profile[] = []
    await run(i, (p) => runs.push(p))
    profiles.push(together(runs))
  }
  return typical(profiles)
}

/** The least that any request takes: one small dispatch and its readback. */
async function roundTrip(device: Device, runs: number): Promise<number> {
  const graph = new Graph(device.target)
  graph.output('y', embedding(graph.input('ids', ['R'], 'u32'), graph.input('table', ['T', 8])))
  const program = await device.compile(graph)
  const inputs = { ids: new Uint32Array(1), table: new Float32Array(8) }
  const run = () => program.run(inputs, { T: 1, S: 1, C: 1, R: 1 })
  const [timing] = await interleave([{ name: 'round trip', run }], { warmups: 5, runs })
  program.dispose()
  return timing!.medianMs
}
