import { InputError } from '../errors.ts'

/** A recording. Samples in [-1, 1], a channel after the other, all of one length; `rate` in samples a second. */
export interface Sound {
  readonly rate: number
  readonly channels: readonly Float32Array[]
}

/** Of written samples: 16-bit integers, or 32-bit floats. */
export type WavFormat = 's16' | 'f32'

const sampleBytes: Record<WavFormat, number> = { s16: 2, f32: 4 }
/** Sizes from here on mean "until the end": what sox writes to a pipe; others write 2^32 - 1. */
const UNKNOWN = 0x7ffff000
const tags = { pcm: 1, float: 3, extensible: 0xfffe }

/** A WAV file of one channel. InputError for a rate or a sample that is not a number, and for 2 GB and more. */
export function encodeWav(samples: Float32Array, rate: number, format: WavFormat = 's16'): Uint8Array<ArrayBuffer> {
  const header = wavHeader(rate, format, samples.length)
  const file = new Uint8Array(header.length + samples.length * sampleBytes[format])
  file.set(header)
  file.set(wavSamples(samples, format), header.length)
  return file
}

/**
 * What stands before the samples of one channel. `length` samples follow; without it as many as come, so that a pipe
 * can be written before its end is known. Multimedia Programming Interface and Data Specifications 1.0 (1991), with
 * the fact chunk that formats other than PCM have.
 */
export function wavHeader(rate: number, format: WavFormat = 's16', length?: number): Uint8Array<ArrayBuffer> {
  const bytes = sampleBytes[format]
  if (!(Number.isInteger(rate) && rate > 0 && rate * bytes < 2 ** 32))
    throw new InputError(`wav: rate is ${rate}, expected a positive integer of samples a second`)
  const size = length === undefined ? UNKNOWN : length * bytes
  if (length !== undefined && size >= UNKNOWN)
    throw new InputError(
      `wav: ${length} samples are ${size} bytes, expected less than ${UNKNOWN}; split them`,
      'too_long',
    )
  const pcm = format === 's16'
  const fmt = [u16(pcm ? tags.pcm : tags.float), u16(1), u32(rate), u32(rate * bytes), u16(bytes), u16(8 * bytes)]
  const chunks = pcm
    ? chunk('fmt ', ...fmt)
    : [...chunk('fmt ', ...fmt, u16(0)), ...chunk('fact', u32(length ?? UNKNOWN / bytes))]
  const head = [...text('WAVE'), ...chunks, ...text('data'), ...u32(size)]
  return Uint8Array.from([...text('RIFF'), ...u32(Math.min(size + head.length, 2 ** 32 - 1)), ...head])
}

/** The bytes of samples as they follow a header. 16-bit samples are rounded to the nearest and held within range. */
export function wavSamples(samples: Float32Array, format: WavFormat = 's16'): Uint8Array<ArrayBuffer> {
  const bytes = sampleBytes[format]
  const view = new DataView(new ArrayBuffer(samples.length * bytes))
  for (let i = 0; i < samples.length; i++) {
    const x = samples[i]!
    if (!Number.isFinite(x)) throw new InputError(`wav: sample ${i} is ${x}, expected a number`)
    if (format === 'f32') view.setFloat32(i * bytes, x, true)
    else view.setInt16(i * bytes, Math.max(-32768, Math.min(32767, Math.round(x * 32768))), true)
  }
  return new Uint8Array(view.buffer)
}

const text = (s: string): number[] => [...s].map((c) => c.charCodeAt(0))
const u16 = (n: number): number[] => [n & 255, n >>> 8]
const u32 = (n: number): number[] => [...u16(n & 0xffff), ...u16(n >>> 16)]
const chunk = (id: string, ...fields: number[][]): number[] => [
  ...text(id),
  ...u32(fields.flat().length),
  ...fields.flat(),
]

/** How a sample is read, by its kind and bits. */
const readers: Record<string, (view: DataView, at: number) => number> = {
  'pcm 8': (view, at) => view.getUint8(at) / 128 - 1,
  'pcm 16': (view, at) => view.getInt16(at, true) / 2 ** 15,
  'pcm 24': (view, at) => (view.getUint16(at, true) + view.getInt8(at + 2) * 2 ** 16) / 2 ** 23,
  'pcm 32': (view, at) => view.getInt32(at, true) / 2 ** 31,
  'float 32': (view, at) => view.getFloat32(at, true),
  'float 64': (view, at) => view.getFloat64(at, true),
}

/**
 * Reads a WAV file: integers of 8, 16, 24 or 32 bits, floats of 32 or 64, any rate and number of channels. InputError
 * for what is not a WAV file or ends too early, 'unsupported' for other codings.
 */
export function decodeWav(file: Uint8Array): Sound {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength)
  const id = (at: number): string => String.fromCharCode(...file.subarray(at, at + 4))
  if (file.length < 12 || id(0) !== 'RIFF' || id(8) !== 'WAVE')
    throw new InputError('wav: this is no WAV file (it begins with no RIFF and WAVE); convert it with sox or ffmpeg')
  let format: ReturnType<typeof formatOf> | undefined
  for (let at = 12; at + 8 <= file.length; ) {
    const [name, begin, size] = [id(at), at + 8, view.getUint32(at + 4, true)]
    const end = size >= UNKNOWN ? file.length : begin + size
    if (end > file.length)
      throw new InputError(`wav: ends at byte ${file.length} within ${name.trim()}, expected ${end}; copy it again`)
    if (name === 'fmt ') format = formatOf(view, begin, end - begin)
    if (name === 'data') {
      if (!format) throw new InputError('wav: samples come before their format, expected fmt first; convert it anew')
      return { rate: format.rate, channels: channelsOf(view, begin, end, format) }
    }
    at = end + (size % 2) // chunks begin at even bytes
  }
  throw new InputError('wav: has no samples, expected a data chunk; copy it again')
}

function formatOf(view: DataView, at: number, size: number) {
  if (size < 16) throw new InputError(`wav: fmt has ${size} bytes, expected at least 16; convert it anew`)
  const tag = view.getUint16(at, true)
  const coding = tag === tags.extensible && size >= 26 ? view.getUint16(at + 24, true) : tag
  const [channels, rate, frame, bits] = [2, 4, 12, 14].map((offset) =>
    offset === 4 ? view.getUint32(at + offset, true) : view.getUint16(at + offset, true),
  ) as [number, number, number, number]
  const kind = coding === tags.pcm ? 'pcm' : coding === tags.float ? 'float' : `coding ${coding},`
  const read = readers[`${kind} ${bits}`]
  if (!read) {
    const expected = 'expected pcm of 8, 16, 24 or 32 bits or float of 32 or 64'
    throw new InputError(`wav: has ${kind} ${bits} bits, ${expected}; convert it with sox or ffmpeg`, 'unsupported')
  }
  if (channels === 0 || rate === 0 || frame !== (channels * bits) / 8)
    throw new InputError(
      `wav: has ${channels} channels of ${bits} bits in ${frame} bytes at ${rate} Hz; convert it anew`,
    )
  return { channels, rate, bytes: bits / 8, read }
}

function channelsOf(
  view: DataView,
  begin: number,
  end: number,
  { channels, bytes, read }: ReturnType<typeof formatOf>,
): Float32Array[] {
  const length = Math.floor((end - begin) / (channels * bytes))
  return Array.from({ length: channels }, (_, c) => {
    const samples = new Float32Array(length)
    for (let i = 0; i < length; i++) samples[i] = read(view, begin + (i * channels + c) * bytes)
    return samples
  })
}

/** The mean of all channels. */
export function mono({ channels }: Sound): Float32Array {
  const [first, ...others] = channels
  if (!first || others.length === 0) return first ?? new Float32Array()
  return first.map((x, i) => others.reduce((sum, channel) => sum + channel[i]!, x) / channels.length)
}
