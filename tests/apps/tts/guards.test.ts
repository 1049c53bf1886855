import { describe, expect, test } from 'vitest'
import { loopWatch } from '../../../src/apps/tts/guards.ts'
import { InputError, type SayOptions } from '../../../src/index.ts'
import { fixtureTensors } from '../../fixtures.ts'
import { FRAMES_PER_SECOND, fakeVoice, HOP, RIGHT, type Row, silence, speech } from './fake_voice.ts'

/** 30 phonemes with those of begin and end, 2 s by the usual rate. */
const text = 'abcdefg abcdefg abcdefg abcd'
const usual: Row = { frames: speech(130) }

async function say(rows: (call: number) => Row, words = text, options: SayOptions = {}) {
  const { tts, asked } = fakeVoice(rows)
  const told: string[] = []
  const spoken = await tts.say(words, { onWarning: (message) => told.push(message), ...options })
  expect(spoken.warnings).toEqual(told)
  return { ...spoken, asked, frames: spoken.samples.length / HOP }
}

test('what ends as it should is left alone', async () => {
  const { pieces, warnings, ended, asked, frames } = await say(() => usual)
  expect(warnings).toEqual([])
  expect([ended, asked.length, frames]).toEqual(['eos', 1, 130 + RIGHT])
  expect(pieces[0]).toMatchObject({ text, ended: 'eos', seed: 0, seconds: 130 / FRAMES_PER_SECOND })
})

test('an end is not heard before two fifths of what is expected, unless that is asked for', async () => {
  const least = Math.floor(0.4 * 2 * FRAMES_PER_SECOND)
  expect((await say(() => usual)).asked[0]!.sampling).toMatchObject({ minFrames: least })
  expect((await say(() => usual, text, { sampling: { minFrames: 3 } })).asked[0]!.sampling).toMatchObject({
    minFrames: 3,
  })
})

describe('what gives no sound', () => {
  test.each<[string, Row]>([
    ['an end at once', { frames: [] }],
    ['an end after five frames', { frames: speech(5) }],
    ['silence and an end', { frames: silence(60) }],
    ['silence without an end', { frames: silence(1000) }],
  ])('%s: is tried with the seeds that follow', async (_, row) => {
    const { asked, pieces, warnings, frames } = await say((call) => (call < 2 ? row : usual), text, {
      sampling: { seed: 7 },
    })
    expect(asked.map(({ sampling }) => sampling!.seed)).toEqual([7, 8, 9])
    expect(pieces.map(({ seed, ended }) => [seed, ended])).toEqual([[9, 'eos']])
    expect(warnings).toEqual([`say: "${text}" gave no sound with seed 7 and was said with 9`])
    expect(frames, 'of the last try alone').toBe(130 + RIGHT)
  })

  test('is left out after three more seeds, and the rest is said', async () => {
    const { asked, pieces, warnings, frames } = await say(
      (call) => (call < 4 ? { frames: [] } : usual),
      `${text}!\n\n${text}.`,
    )
    expect(asked).toHaveLength(5)
    expect(pieces.map(({ seconds }) => seconds > 0)).toEqual([false, true])
    expect(warnings).toEqual([`say: "${text}!" gave no sound with the seeds 0 to 3 and was left out`])
    expect(frames).toBe(130 + RIGHT)
  })

  test('is an error where nothing else is said', async () => {
    const silent = say(() => ({ frames: [] }))
    await expect(silent).rejects.toThrow(/^say: the model gave no sound .+ try another seed$/)
    await expect(silent).rejects.toBeInstanceOf(InputError)
  })

  test('of the most probable codes is not tried again: they are always the same', async () => {
    const { tts, asked } = fakeVoice(() => ({ frames: [] }))
    await expect(tts.say(text, { sampling: { temperature: 0 } })).rejects.toThrow('no sound')
    expect(asked).toHaveLength(1)
  })
})

test('silence that does not end is cut, and the next piece is said', async () => {
  const mute = { frames: [...speech(90), ...silence(2000)] }
  const { pieces, warnings, samples, codes } = await say((call) => (call === 0 ? mute : usual), `${text}!\n\n${text}.`)
  expect(pieces.map(({ ended }) => ended)).toEqual(['silence', 'eos'])
  expect(pieces[0]!.seconds * FRAMES_PER_SECOND, 'with a quarter of a second of it').toBeCloseTo(90 + 21)
  expect(warnings).toEqual([expect.stringMatching(/fell silent and was ended after 1\.3 s$/)])
  const sounding = samples.filter((x) => x > 0).length / HOP
  expect(sounding).toBe(90 + 130)
  expect(samples.length).toBe(codes.frames * HOP)
})

test('silence up to a limit that the caller set is handed out', async () => {
  const { frames, ended, warnings } = await say(() => ({ frames: silence(1000) }), text, { maxSeconds: 0.2 })
  expect([frames, ended, warnings]).toEqual([Math.ceil(0.2 * FRAMES_PER_SECOND) + RIGHT, 'length', []])
})

test('a pause within speech stays', async () => {
  const paused = { frames: [...speech(60), ...silence(120), ...speech(60)] }
  const { warnings, frames, ended } = await say(() => paused)
  expect([warnings, frames, ended]).toEqual([[], 240 + RIGHT, 'eos'])
})

test.each([1, 7, 60])('codes that loop with a period of %i are stopped', async (period) => {
  const loop = Array.from({ length: 1000 }, (_, i) => 200 + 3 * (i % period))
  const words = `${text} ${text} ${text}`
  const { pieces, warnings, frames } = await say(() => ({ frames: [...speech(100), ...loop] }), words)
  expect(pieces[0]!.ended).toBe('loop')
  expect(warnings).toEqual([expect.stringMatching(/repeated itself and was ended after/)])
  expect(frames).toBeGreaterThan(100 + 130)
  expect(frames).toBeLessThan(100 + 172 + period + RIGHT)
})

test('what goes on and on is stopped at twice its expected length, or at maxSeconds', async () => {
  const endless = { frames: speech(5000) }
  const { pieces, warnings, frames } = await say(() => endless)
  expect(pieces[0]!.ended).toBe('overlong')
  expect(frames).toBe(Math.ceil((2 * 2 + 1) * FRAMES_PER_SECOND) + RIGHT)
  expect(warnings).toEqual([expect.stringMatching(/went on beyond its text and was ended after 5\.0 s/)])
  const short = await say(() => endless, text, { maxSeconds: 1 })
  expect([short.ended, short.warnings]).toEqual(['length', []])
  expect(short.frames).toBe(Math.ceil(FRAMES_PER_SECOND) + RIGHT)
})

test('the small voice’s own speech is no loop', () => {
  const goldens = fixtureTensors('zonos-nano/golden.safetensors')
  for (const name of ['t0', 't1', 't2'].flatMap((t) => [`${t}.greedy`, `${t}.greedy_rep3`])) {
    const { shape, data } = goldens.get(name)
    const isLoop = loopWatch()
    const frames = shape[1]!
    expect(frames).toBeGreaterThan(30)
    for (let t = 0; t < frames; t++) expect(isLoop([data[t]!]), `${name}, frame ${t}`).toBe(false)
  }
})
