import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { parseArgs } from 'node:util'
import { InputError } from '../src/errors.ts'
import { decodeWav, mono } from '../src/media/wav.ts'
import { save, table } from './measure.ts'

const help = `usage: npm run bench:likeness -- SPOKEN.wav --own A.wav --others B.wav,C.wav [--out FILE]

How far a recording is from another one of its own sentence and from those of other sentences, as the mean distance of
their log-mel frames along the best alignment; and how many times farther the nearest of the others is than its own.
`

const RATE = 44100
const WINDOW = 2048
const HOP = 512
const MELS = 64
const TOP = 11025 // Hz: the recordings that the embedded voice learnt from have nothing above
const FLOOR = 1e-3 // of the loudest band of any frame, -60 dB
const SILENCE = 1e-2 // of the loudest frame, -40 dB

/** Frames of log-mel magnitudes, MELS a frame; without silence before and after, nor the file's loudness. */
function logMel(file: string): Float64Array[] {
  const { rate, channels } = decodeWav(readFileSync(file))
  if (rate !== RATE)
    throw new InputError(`likeness: ${file} has ${rate} samples a second, expected ${RATE}; resample it with sox`)
  const frames = spectra(mono({ rate, channels })).map((spectrum) => filters.map((filter) => filter(spectrum)))
  const loudness = frames.map((bands) => bands.reduce((sum, band) => sum + band, 0))
  const loudest = loudness.reduce((a, b) => Math.max(a, b), 0)
  if (loudest === 0) throw new InputError(`likeness: ${file} is silent, expected speech`)
  const heard = (sum: number) => sum >= SILENCE * loudest
  const speech = frames.slice(loudness.findIndex(heard), loudness.findLastIndex(heard) + 1)
  const floor = FLOOR * speech.flat().reduce((a, b) => Math.max(a, b))
  const logs = speech.map((bands) => Float64Array.from(bands, (band) => Math.log(Math.max(band, floor))))
  const mean = logs.reduce((sum, bands) => bands.reduce((a, b) => a + b, sum), 0) / (logs.length * MELS)
  return logs.map((bands) => bands.map((band) => band - mean))
}

/** Magnitudes of [0, WINDOW / 2] for a Hann window around every HOP-th sample; zeros beyond the ends. */
function spectra(samples: Float32Array): Float64Array[] {
  return Array.from({ length: 1 + Math.floor(samples.length / HOP) }, (_, frame) => {
    const begin = frame * HOP - WINDOW / 2
    const re = Float64Array.from(
      { length: WINDOW },
      (_, i) => (samples[begin + i] ?? 0) * (0.5 - 0.5 * Math.cos((2 * Math.PI * i) / WINDOW)),
    )
    const im = new Float64Array(WINDOW)
    fft(re, im)
    return Float64Array.from({ length: WINDOW / 2 + 1 }, (_, k) => Math.hypot(re[k]!, im[k]!))
  })
}

/** In place, for a power of two: Cooley and Tukey (1965), radix 2, decimation in time. */
function fft(re: Float64Array, im: Float64Array): void {
  const n = re.length
  for (let i = 1, j = 0; i < n; i++) {
    let bit = n >> 1
    for (; j & bit; bit >>= 1) j ^= bit // j counts as i does, with its bits reversed
    j ^= bit
    if (i < j) {
      ;[re[i], re[j]] = [re[j]!, re[i]!]
      ;[im[i], im[j]] = [im[j]!, im[i]!]
    }
  }
  for (let half = 1; half < n; half *= 2) {
    for (let k = 0; k < half; k++) {
      const [cos, sin] = [Math.cos((Math.PI * k) / half), -Math.sin((Math.PI * k) / half)]
      for (let a = k; a < n; a += 2 * half) {
        const b = a + half
        const [x, y] = [re[b]! * cos - im[b]! * sin, re[b]! * sin + im[b]! * cos]
        ;[re[b], im[b]] = [re[a]! - x, im[a]! - y]
        ;[re[a], im[a]] = [re[a]! + x, im[a]! + y]
      }
    }
  }
}

/** Triangles of equal width in mel, 2595 log10(1 + Hz / 700) (O'Shaughnessy 1987); each takes a mean of its bins. */
const filters = Array.from({ length: MELS }, (_, band) => {
  const top = Math.log(1 + TOP / 700)
  const [low, centre, high] = [0, 1, 2].map((edge) => 700 * Math.expm1((top * (band + edge)) / (MELS + 1)))
  const bins = Array.from({ length: WINDOW / 2 + 1 }, (_, k) => (k * RATE) / WINDOW)
    .map((hz, k) => ({ k, weight: Math.min((hz - low!) / (centre! - low!), (high! - hz) / (high! - centre!)) }))
    .filter(({ weight }) => weight > 0)
  const total = bins.reduce((sum, { weight }) => sum + weight, 0)
  return (spectrum: Float64Array): number => bins.reduce((sum, { k, weight }) => sum + weight * spectrum[k]!, 0) / total
})

/**
 * Dynamic time warping: the least sum of Euclidean distances between frames over all paths from both beginnings to both
 * ends with the steps (1, 1), (1, 0) and (0, 1); divided by the number of pairs on that path.
 */
function distance(a: readonly Float64Array[], b: readonly Float64Array[]): number {
  const unreached = { sum: Infinity, pairs: 0 }
  let before = [{ sum: 0, pairs: 0 }, ...b.map(() => unreached)]
  for (const x of a) {
    const row = [unreached]
    for (const [j, y] of b.entries()) {
      const best = [before[j + 1]!, row[j]!].reduce((p, q) => (q.sum < p.sum ? q : p), before[j]!)
      row.push({ sum: best.sum + euclidean(x, y), pairs: best.pairs + 1 })
    }
    before = row
  }
  const end = before.at(-1)!
  return end.sum / end.pairs
}

const euclidean = (x: Float64Array, y: Float64Array): number =>
  Math.sqrt(x.reduce((sum, value, i) => sum + (value - y[i]!) ** 2, 0))

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    own: { type: 'string' },
    others: { type: 'string', default: '' },
    out: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})

const [spoken, ...rest] = positionals
const others = values.others.split(',').filter(Boolean)
if (values.help || !spoken || rest.length > 0 || !values.own || others.length === 0) {
  process.stdout.write(help)
  process.exitCode = values.help ? 0 : 2
} else {
  const frames = logMel(spoken)
  const own = distance(frames, logMel(values.own))
  const far = others.map((file) => distance(frames, logMel(file)))
  const rows = [
    { sentence: 'own', file: basename(values.own), distance: own, timesOwn: 1 },
    ...far.map((d, i) => ({ sentence: 'other', file: basename(others[i]!), distance: d, timesOwn: d / own })),
  ]
  const ratio = Math.min(...far) / own
  process.stdout.write(`${table(rows)}\nnearest other / own: ${ratio.toFixed(2)}\n`)
  if (values.out) save(values.out, { bench: 'likeness', spoken: basename(spoken), ratio, rows })
}
