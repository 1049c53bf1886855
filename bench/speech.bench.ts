import type { Profile } from '../src/device/device.ts'
import { type ZonosSession, zonosSession } from '../src/models/zonos/session.ts'
import type { Bench } from './bench.ts'
import { type Case, interleave, origin, type Row } from './measure.ts'
import { byKernel, sumMs, typical } from './profile.ts'
import { randomSpeaker, speakerShape } from './random_speaker.ts'

const PREFIX = 60 // tokens
const FRAMES = 256
const PROFILED = 24

/**
 * Frames of codes on random weights of Zonos' shapes, 16 bits or 8 per weight of a layer, with guidance (two rows) and
 * without; and what a frame in the middle spends its time on. A second of audio has 86.13 frames.
 */
export const speech: Bench = async (device, { shapes, warmups, runs }, note) => {
  const rounds = { warmups, runs }
  const rows: Row[] = []
  const c = speakerShape(shapes.includes('tiny'))
  for (const layers of [undefined, 'q8'] as const) {
    note(`${layers ?? '16 bits'}: filling weights`)
    const model = await randomSpeaker(device, c, layers)
    const session = zonosSession(device, c, model.w)
    const cases = [2, 1].map((cfgScale): Case => {
      const name = `${layers ?? '16 bits'}, ${cfgScale === 1 ? 'one row' : 'two rows'}`
      return { name, run: () => speak(session, cfgScale, FRAMES) }
    })
    for (const [i, timing] of (await interleave(cases, rounds)).entries()) {
      const frameMs = timing.medianMs / FRAMES
      const profiles: Profile[] = []
      await speak(session, 2 - i, PROFILED, (profile) => profiles.push(profile))
      const profile = typical(profiles.slice(1)) // without the prefill
      rows.push({
        ...timing,
        frameMs,
        realTime: 1000 / frameMs / (44100 / 512),
        kernelsMs: sumMs(profile.dispatches),
        dispatches: profile.dispatches.length,
        submits: profile.submits,
        encodeMs: profile.encodeMs,
        peakBytes: device.memory.keptBytes + device.memory.slotBytes,
        kernels: byKernel(profile),
      })
      note(`${timing.case}: ${frameMs.toFixed(3)} ms a frame, kernels ${sumMs(profile.dispatches).toFixed(3)} ms`)
    }
    session.dispose()
    model.release()
  }
  return { bench: 'speech', ...origin(device), checkpoint: 'random weights', ...rounds, rows }
}

async function speak(session: ZonosSession, cfgScale: number, frames: number, onProfile?: (p: Profile) => void) {
  const rows = Float32Array.from({ length: PREFIX * session.config.hidden }, (_, i) => Math.sin(i * i))
  const sampling = { minFrames: frames } // nothing ends early
  const prefixes = { conditional: { rows }, unconditional: { rows } }
  await session.generate({ ...prefixes, cfgScale, maxFrames: frames, sampling }, { onProfile })
}
