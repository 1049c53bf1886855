import { readFileSync } from 'node:fs'
import type { Device, Profile } from '../src/device/device.ts'
import { type DacSession, dacSession } from '../src/models/dac/session.ts'
import { CODEBOOKS } from '../src/models/zonos/config.ts'
import { type ZonosSession, zonosSession } from '../src/models/zonos/session.ts'
import type { Bench, BenchOptions } from './bench.ts'
import { longSpeech } from './long_speech.ts'
import { interleave, median, origin, type Row, summary } from './measure.ts'
import { byKernel, sumMs, together, typical } from './profile.ts'
import { codecShape, randomCodec, randomSpeaker, speakerShape } from './random_speaker.ts'

/** Tokens before the column in the middle of those that are timed. */
const CONTEXT = 600
const FRAMES = 128
const PROFILED = 24
/** A sentence of 70 phonemes and the other conditioners. */
const SENTENCE = 80
const SECONDS = 10

type Note = (line: string) => void

/** What torch_baseline.py --speech writes. */
interface Baseline {
  readonly speech: readonly (
    | { readonly case: 'frame'; readonly rows: number; readonly cudaGraphMs: number }
    | { readonly case: 'decode'; readonly dtype: 'float32' | 'float16'; readonly ms: number }
  )[]
}

/**
 * Speech on random weights of the published shapes: a frame of codes around a context of 600, with guidance (two rows)
 * and without, of 16-bit weights and q8; the codec's decoding of ten seconds; and the time from a prefix to the first
 * samples; a text of some minutes if one is asked for. What a frame and a decoding spend their time on comes from profiled runs, which have a pass for every
 * dispatch. A second of audio has 86.13 frames.
 */
export const tts: Bench = async (device, options, note) => {
  const tiny = options.shapes.includes('tiny')
  const rounds = { warmups: options.warmups, runs: options.runs }
  const told = clocked(note)
  told('codec: filling weights')
  const codec = await randomCodec(device, codecShape(tiny))
  const decoder = dacSession(device, codec.c, codec.w)
  const torch = options.baseline ? (JSON.parse(readFileSync(options.baseline, 'utf8')) as Baseline).speech : []
  const rows: Row[] = [await decoding(device, decoder, options, told)]
  for (const layers of [undefined, 'q8'] as const) {
    told(`${layers ?? '16 bits'}: filling weights`)
    const model = await randomSpeaker(device, speakerShape(tiny), layers)
    const session = zonosSession(device, model.c, model.w)
    rows.push(...(await frames(device, session, layers ?? '16 bits', options, told)))
    rows.push(await beginning(session, decoder, layers ?? '16 bits', options, told))
    if (options.minutes > 0 && !layers) {
      told(`${options.minutes} minutes of speech`)
      rows.push(await longSpeech(device, { language: session, weights: model.w, codec: decoder }, options.minutes))
    }
    session.dispose()
    model.release()
  }
  codec.release()
  return {
    bench: 'tts',
    ...origin(device),
    checkpoint: 'random weights',
    context: CONTEXT,
    ...rounds,
    rows: rows.map((row) => ({ ...row, ...beside(row, torch, device) })),
  }
}

/** PyTorch's time for the same, and how many times as fast this is: of f16 where the device has that. */
function beside({ rows, seconds, medianMs }: Row, torch: Baseline['speech'], { target }: Device): Row {
  const dtype = target.operand === 'f16' ? 'float16' : 'float32'
  const theirs = torch.find((t) => (t.case === 'frame' ? t.rows === rows : t.dtype === dtype && seconds === SECONDS))
  if (!theirs) return {}
  const torchMs = theirs.case === 'frame' ? theirs.cudaGraphMs : theirs.ms
  return { torchMs, ofTorch: torchMs / (medianMs as number) }
}

/** Notes with the seconds since the begin: what is slow is seen while it runs. */
function clocked(note: Note): Note {
  const start = performance.now()
  return (line) => note(`${((performance.now() - start) / 1000).toFixed(1)} s  ${line}`)
}

/** Frames of codes of one session, from one reading of codes to the last: without the prefill. */
async function frames(
  device: Device,
  session: ZonosSession,
  weights: string,
  { warmups, runs }: BenchOptions,
  note: Note,
): Promise<Row[]> {
  const cases = [
    { cfgScale: 2, name: `frame, ${weights}, two rows` },
    { cfgScale: 1, name: `frame, ${weights}, one row` },
  ]
  await session.program('prefill')
  await session.program('decode')
  note(`${weights}: compiled`)
  const times = cases.map((): number[] => [])
  for (let round = -warmups; round < runs; round++)
    for (const [i, { cfgScale }] of cases.entries()) {
      const ms = await frameMs(session, cfgScale)
      if (round >= 0) times[i]!.push(ms)
      else note(`${cases[i]!.name}: warming up, ${ms.toFixed(3)} ms`)
    }
  const rows: Row[] = []
  for (const [i, { cfgScale, name }] of cases.entries()) {
    const profiles: Profile[] = []
    await speak(session, cfgScale, PROFILED, { onProfile: (profile) => profiles.push(profile) })
    const profile = typical(profiles.slice(1)) // without the prefill
    const kernelsMs = sumMs(profile.dispatches)
    const { medianMs, ...timing } = summary(times[i]!)
    rows.push({
      ...{ case: name, rows: cfgScale === 1 ? 1 : 2, medianMs, ...timing, timesMs: times[i] },
      realTime: 1000 / medianMs / (44100 / 512),
      ...{ kernelsMs, gapsMs: profile.spanMs - kernelsMs, encodeMs: profile.encodeMs },
      ...{ dispatches: profile.dispatches.length, submits: profile.submits },
      peakBytes: device.memory.keptBytes + device.memory.slotBytes,
      kernels: byKernel(profile),
    })
    note(`${name}: ${medianMs.toFixed(3)} ms, kernels ${kernelsMs.toFixed(3)} ms`)
  }
  return rows
}

/** Milliseconds a frame, between the first codes that come back and the last ones. */
async function frameMs(session: ZonosSession, cfgScale: number): Promise<number> {
  const marks: { ms: number; frames: number }[] = []
  let frames = 0
  await speak(session, cfgScale, FRAMES, {
    onFrames: (codes) => {
      frames += codes.frames
      marks.push({ ms: performance.now(), frames })
    },
  })
  const [first, last] = [marks[0]!, marks.at(-1)!]
  return (last.ms - first.ms) / (last.frames - first.frames)
}

type Heard = NonNullable<Parameters<ZonosSession['generate']>[1]>

async function speak(session: ZonosSession, cfgScale: number, frames: number, heard: Heard): Promise<void> {
  await session.generate(speechOf(session, cfgScale, CONTEXT - Math.round(frames / 2), frames), heard)
}

/** Prefixes of noise, and an end after so many frames and not before. */
function speechOf(session: ZonosSession, cfgScale: number, tokens: number, frames: number) {
  const rows = Float32Array.from({ length: tokens * session.config.hidden }, (_, i) => Math.sin(i * i))
  const sampling = { minFrames: frames }
  return { conditional: { rows }, unconditional: { rows }, cfgScale, maxFrames: frames, sampling }
}

/** Codes of so many frames; which ones does not matter. */
const codesOf = (frames: number): Uint16Array =>
  Uint16Array.from({ length: frames * CODEBOOKS }, (_, i) => (i * 7919) % 1024)

async function decoding(device: Device, codec: DacSession, { warmups, runs }: BenchOptions, note: Note): Promise<Row> {
  const { sampleRate, hop } = codec.config
  const codes = codesOf(Math.round((SECONDS * sampleRate) / hop))
  const profiles: Profile[] = []
  await codec.programs()
  note('codec: compiled')
  const name = `decode ${SECONDS} s`
  const [timing] = await interleave([{ name, run: () => codec.decode(codes) }], { warmups, runs })
  await codec.decode(codes, { onProfile: (profile) => profiles.push(profile) })
  const profile = together(profiles)
  const kernelsMs = sumMs(profile.dispatches)
  note(`${name}: ${timing!.medianMs.toFixed(2)} ms, kernels ${kernelsMs.toFixed(2)} ms`)
  return {
    ...timing!,
    seconds: SECONDS,
    realTime: (1000 * SECONDS) / timing!.medianMs,
    ...{ kernelsMs, encodeMs: profile.encodeMs },
    ...{ dispatches: profile.dispatches.length, submits: profile.submits },
    peakBytes: device.memory.keptBytes + device.memory.slotBytes,
    kernels: byKernel(profile),
  }
}

/** From the prefixes of a sentence to the first samples, with everything compiled. */
async function beginning(
  session: ZonosSession,
  codec: DacSession,
  weights: string,
  { warmups, runs }: BenchOptions,
  note: Note,
): Promise<Row> {
  const name = `first audio, ${weights}`
  const firstMs: number[] = []
  const codesMs: number[] = []
  const samples: number[] = []
  for (let round = -warmups; round < runs; round++) {
    const first = await firstAudio(session, codec)
    if (round < 0) continue
    firstMs.push(first.samplesMs)
    codesMs.push(first.codesMs)
    samples.push(first.samples)
  }
  const timing = summary(firstMs)
  note(`${name}: ${timing.medianMs.toFixed(2)} ms, of which codes ${median(codesMs).toFixed(2)} ms`)
  return { case: name, ...timing, timesMs: firstMs, codesMs: median(codesMs), samples: median(samples) }
}

/** How soon codes enough for the first samples are there, and these. */
async function firstAudio(session: ZonosSession, codec: DacSession) {
  const enough = new AbortController()
  const start = performance.now()
  const speech = speechOf(session, 2, SENTENCE, FRAMES)
  const { codes, push, end } = feed()
  const spoken = session
    .generate(speech, { signal: enough.signal, onFrames: ({ data }) => push(data) })
    .catch((error) => {
      if (!enough.signal.aborted) throw error
    })
    .finally(end)
  let codesMs = 0
  async function* watched() {
    for await (const data of codes) {
      codesMs = performance.now() - start
      yield data
    }
  }
  try {
    for await (const { length } of codec.stream(watched()))
      return { codesMs, samplesMs: performance.now() - start, samples: length }
    throw new Error('tts: the codec gave no samples')
  } finally {
    enough.abort()
    await spoken
  }
}

/** What is pushed, for whoever reads later. */
function feed() {
  const held: Uint16Array[] = []
  let ended = false
  let wake = (): void => {}
  async function* codes() {
    for (;;) {
      const next = held.shift()
      if (next) yield next
      else if (ended) return
      else
        await new Promise<void>((resolve) => {
          wake = resolve
        })
    }
  }
  return {
    codes: codes(),
    push: (data: Uint16Array) => {
      held.push(data)
      wake()
    },
    end: () => {
      ended = true
      wake()
    },
  }
}
