import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { InputError } from '../../src/errors.ts'
import { decodeWav, encodeWav, mono, type WavFormat, wavHeader, wavSamples } from '../../src/media/wav.ts'
import { noise } from '../check.ts'

const joined = (...parts: Uint8Array[]) => Uint8Array.from(parts.flatMap((part) => [...part]))
const ascii = (text: string) => new TextEncoder().encode(text)
const u32 = (n: number) => new Uint8Array(Uint32Array.of(n).buffer)
const u16s = (...n: number[]) => new Uint8Array(Uint16Array.from(n).buffer)
const chunk = (id: string, ...parts: Uint8Array[]) => {
  const body = joined(...parts)
  return joined(ascii(id), u32(body.length), body, new Uint8Array(body.length % 2))
}
const riff = (...chunks: Uint8Array[]) => {
  const body = joined(ascii('WAVE'), ...chunks)
  return joined(ascii('RIFF'), u32(body.length), body)
}
const fmt = (tag: number, channels: number, rate: number, bits: number, ...extra: number[]) => {
  const frame = (channels * bits) / 8
  return chunk('fmt ', u16s(tag, channels), u32(rate), u32(rate * frame), u16s(frame, bits, ...extra))
}

describe('written files', () => {
  test('of 16 bits, byte by byte', () => {
    const want = joined(
      ...[ascii('RIFF'), u32(44), ascii('WAVEfmt '), u32(16), u16s(1, 1), u32(44100), u32(88200), u16s(2, 16)],
      ...[ascii('data'), u32(8), u16s(0, 16384, 32767, 0x8000)],
    )
    expect(encodeWav(Float32Array.of(0, 0.5, 1, -1), 44100)).toEqual(want)
  })
  test('of floats, byte by byte', () => {
    const want = joined(
      ...[ascii('RIFF'), u32(54), ascii('WAVEfmt '), u32(18), u16s(3, 1), u32(8000), u32(32000), u16s(4, 32, 0)],
      ...[ascii('fact'), u32(4), u32(1), ascii('data'), u32(4), u32(0x40000000)],
    )
    expect(encodeWav(Float32Array.of(2), 8000, 'f32')).toEqual(want)
  })
  test('are read as they were, floats to the bit and integers to the nearest of 65,536 steps', () => {
    fc.assert(
      fc.property(
        fc.float32Array({ noNaN: true, noDefaultInfinity: true }),
        fc.integer({ min: 1, max: 400_000 }),
        (x, rate) => {
          const { rate: same, channels } = decodeWav(encodeWav(x, rate, 'f32'))
          expect(same).toBe(rate)
          expect(channels).toEqual([x])
          const [coarse] = decodeWav(encodeWav(x, rate)).channels
          for (const [i, v] of x.entries())
            expect(Math.abs(coarse![i]! - Math.max(-1, Math.min(32767 / 32768, v)))).toBeLessThanOrEqual(0.5 / 32768)
        },
      ),
    )
    const [again] = decodeWav(encodeWav(noise(5000), 16000)).channels
    expect(decodeWav(encodeWav(again!, 16000)).channels[0]).toEqual(again)
  })
  test.each<WavFormat>(['s16', 'f32'])('of %s piece by piece, before the end is known', (format) => {
    const x = noise(1000)
    const stream = joined(
      wavHeader(44100, format),
      wavSamples(x.subarray(0, 400), format),
      wavSamples(x.subarray(400), format),
    )
    expect(decodeWav(stream)).toEqual(decodeWav(encodeWav(x, 44100, format)))
    expect(decodeWav(wavHeader(44100, format)).channels).toEqual([new Float32Array()])
  })
  test('what cannot be written is an error', () => {
    for (const bad of [Number.NaN, Infinity]) expect(() => wavSamples(Float32Array.of(0, bad))).toThrow(/sample 1 is/)
    for (const rate of [0, -1, 44100.5, 2 ** 31]) expect(() => wavHeader(rate)).toThrow(InputError)
    expect(() => wavHeader(44100, 's16', 2 ** 30)).toThrow(expect.objectContaining({ code: 'too_long' }))
  })
})

describe('read files', () => {
  test.each([
    ['8 bits', fmt(1, 1, 8000, 8), Uint8Array.of(0, 128, 192, 255), [-1, 0, 0.5, 127 / 128]],
    ['24 bits', fmt(1, 1, 8000, 24), Uint8Array.of(0, 0, 0x80, 0, 0, 0x40, 0xff, 0xff, 0xff), [-1, 0.5, -(2 ** -23)]],
    ['32 bits', fmt(1, 1, 8000, 32), joined(u32(0x80000000), u32(0x40000000)), [-1, 0.5]],
    ['doubles', fmt(3, 1, 8000, 64), new Uint8Array(Float64Array.of(0.25, -3).buffer), [0.25, -3]],
    [
      'extensible',
      fmt(0xfffe, 1, 8000, 16, 22, 16, 4, 0, 1, 0, 0, 0x10, 0x80, 0xaa00, 0x3800, 0x719b),
      u16s(0xc000),
      [-0.5],
    ],
  ])('%s', (_, format, data, want) => {
    const { rate, channels } = decodeWav(riff(format, chunk('data', data)))
    expect(rate).toBe(8000)
    expect(channels).toEqual([Float32Array.from(want)])
  })
  test('channels are parted, and their mean is mono', () => {
    const sound = decodeWav(riff(fmt(1, 2, 48000, 16), chunk('data', u16s(16384, 0, 0xc000, 16384))))
    expect(sound).toEqual({ rate: 48000, channels: [Float32Array.of(0.5, -0.5), Float32Array.of(0, 0.5)] })
    expect(mono(sound)).toEqual(Float32Array.of(0.25, 0))
    expect(mono({ rate: 1, channels: [Float32Array.of(1)] })).toEqual(Float32Array.of(1))
  })
  test('other chunks are passed over, at odd places of a larger buffer too', () => {
    const file = riff(
      chunk('LIST', ascii('odd')),
      fmt(1, 1, 8000, 16),
      chunk('junk'),
      chunk('data', u16s(16384)),
      chunk('tail'),
    )
    const within = joined(Uint8Array.of(7), file).subarray(1)
    expect(decodeWav(within).channels).toEqual([Float32Array.of(0.5)])
  })
  const good = riff(fmt(1, 1, 8000, 16), chunk('data', u16s(1, 2, 3)))
  test.each([
    ['nothing', new Uint8Array(), /no WAV file/],
    ['text', ascii('RIFF or not, this is a text'), /no WAV file/],
    ['RF64', joined(ascii('RF64'), good.subarray(4)), /no WAV file/],
    ['cut', good.subarray(0, good.length - 1), /ends at byte 49 within data, expected 50; copy it again/],
    ['without samples', good.subarray(0, 36), /has no samples/],
    ['without a format', riff(chunk('data', u16s(1))), /samples come before their format/],
    ['of a short format', riff(chunk('fmt ', u16s(1, 1)), chunk('data')), /fmt has 4 bytes/],
    ['of another coding', riff(fmt(7, 1, 8000, 8), chunk('data')), /coding 7, 8 bits, expected pcm/],
    ['of 12 bits', riff(fmt(1, 2, 8000, 12), chunk('data')), /pcm 12 bits/],
    ['without channels', riff(fmt(1, 0, 8000, 16), chunk('data')), /0 channels/],
  ])('a file %s is an error', (_, file, message) => {
    expect(() => decodeWav(file)).toThrow(message)
    expect(() => decodeWav(file)).toThrow(InputError)
  })
  test('whatever the bytes are, it is read or a typed error', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(good.length - 1), fc.nat(255))), fc.nat(good.length), (changes, length) => {
        const file = good.slice(0, length)
        for (const [at, byte] of changes) if (at < length) file[at] = byte
        try {
          decodeWav(file)
        } catch (error) {
          expect(error).toBeInstanceOf(InputError)
        }
      }),
      { examples: [[[[19, 128]], 20]] }, // a format of unknown size, where the file ends
    )
  })
})
