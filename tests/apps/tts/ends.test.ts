import { afterAll, beforeAll, expect, test } from 'vitest'
import { loadTts } from '../../../src/apps/tts/load.ts'
import { cpuDevice } from '../../../src/device/cpu.ts'
import type { Device } from '../../../src/device/device.ts'
import type { Tts } from '../../../src/index.ts'

/** What the small voice is for. PRONOUNCE_FULL=1 says all of them, which takes some minutes. */
const sentences = [
  ...['Good luck.', 'Hi.', 'It stopped.', 'Yes, of course.', 'I do not know.', 'What time is it?', 'The answer is no.'],
  ...['Please close the green door.', 'She sells sea shells.', 'Thank you very much!', 'The train leaves at nine.'],
  ...['Can you send the report before Friday?', 'We will see you tomorrow morning.', 'He bought three apples.'],
  ...['The weather is nice today.', 'Turn left at the corner.', 'My card was charged twice.', 'Dogs bark at night.'],
  ...['Open the window, please.', 'Where is the station?'],
]
const full = process.env.PRONOUNCE_FULL === '1'
const said = full ? sentences : sentences.slice(0, 2)
const joins = full ? 5 : 1

let device: Device
let tts: Tts
beforeAll(async () => {
  device = cpuDevice('test')
  tts = await loadTts('public/models/zonos-nano', { device, codec: 'public/models/dac-nano' })
})
afterAll(() => device.dispose())

const decibels = (samples: Float32Array): number =>
  10 * Math.log10(samples.reduce((sum, x) => sum + x * x, 1e-12) / samples.length)
const largestStep = (samples: Float32Array): number =>
  samples.reduce((most, x, i) => Math.max(most, Math.abs(x - (samples[i - 1] ?? x))), 0)
const MS = 44.1
const PATIENCE = 600_000

test.each(said.map((text, seed) => [text, seed] as const))(
  '%s ends by itself, in quiet and without a click',
  async (text, seed) => {
    const { samples, ended, warnings, pieces } = await tts.say(text, { sampling: { seed } })
    expect([ended, warnings], 'no guard acts').toEqual(['eos', []])
    const last = decibels(samples.subarray(-30 * MS))
    const voiced = Math.round(pieces[0]!.seconds * 44100)
    const [inside, end] = [samples.subarray(0, voiced - 50 * MS), samples.subarray(voiced - 50 * MS)]
    expect(decibels(inside)).toBeGreaterThan(-30)
    expect(last).toBeLessThan(-60)
    expect(largestStep(end)).toBeLessThan(largestStep(inside))
  },
  PATIENCE,
)

test.each(said.slice(0, joins).map((text, i) => [text, said[(i + 1) % said.length]!] as const))(
  '%s %s: no click between',
  async (a, b) => {
    const { samples, pieces, warnings } = await tts.say(`${a}\n\n${b}`)
    expect([pieces.length, warnings]).toEqual([2, []])
    const end = Math.round(pieces[0]!.seconds * 44100)
    const join = samples.subarray(end - 10 * MS, end + 610 * MS) // the pause, and what it meets
    const around = [samples.subarray(0, end - 10 * MS), samples.subarray(end + 610 * MS)]
    expect(largestStep(join)).toBeLessThan(Math.max(...around.map(largestStep)))
    const pause = samples.subarray(end + 50 * MS, end + 500 * MS)
    expect(decibels(pause)).toBeLessThan(-60)
  },
  PATIENCE,
)
