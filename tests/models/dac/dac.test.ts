import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { cpuDevice } from '../../../src/device/cpu.ts'
import type { Device } from '../../../src/device/device.ts'
import { openDevice } from '../../../src/device/open.ts'
import { loadDac, type LoadedDac } from '../../../src/models/dac/load.ts'
import { cosine, expectClose, expectWithin } from '../../check.ts'
import { fixtureModel } from '../../fixtures.ts'
import { f32 } from '../../weights/build.ts'
import { byFrame, nano, randomCodec, randomCodes, tiny, tinyCodes, tinyFiles } from './fixture.ts'

const nanoModel = 'public/models/dac-nano'
const counts = (T: number) => ({ T, S: 1, C: 1, R: 1 })

/** [C, T] as PyTorch has it to [T, C]. */
const timeMajor = ({ shape: [C = 1, T = 1], data }: { shape: readonly number[]; data: Float32Array }): Float32Array =>
  Float32Array.from({ length: C * T }, (_, i) => data[(i % C) * T + Math.floor(i / C)]!)

describe.each([
  ['cpu', async () => cpuDevice('test')],
  ['webgpu', () => openDevice('webgpu', { precision: 'f32' })],
] as const)('goldens on %s', (_, open) => {
  let device: Device
  beforeAll(async () => {
    device = await open()
  })
  afterAll(() => device.dispose())

  describe('dac-tiny', () => {
    let dac: LoadedDac
    beforeAll(async () => {
      dac = await loadDac(fixtureModel('dac-tiny'), { device })
    })
    afterAll(() => dac.dispose())

    test.each([1, 5, 40])('%i frames', async (frames) => {
      expectWithin(await dac.decode(tinyCodes(frames)), tiny.get(`decode${frames}.wave`).data, 2e-5, 0)
    })

    test('layer by layer', async () => {
      const codes = tinyCodes(5)
      const inputs = Object.fromEntries(
        Array.from({ length: 9 }, (_, i) => [`codes.${i}`, codes.filter((_, at) => at % 9 === i)]),
      )
      const traced = new Map(
        (await (await dac.programs()).decoder.trace(inputs, counts(5))).map((t) => [t.name, t.data]),
      )
      expectWithin(traced.get('latent')!, timeMajor(tiny.get('decode5.latent')), 1e-5, 0)
      const layers = [0, 1, 2, 3].flatMap((b) => ['snake1', 'conv_t1', 'res_unit1'].map((name) => `block.${b}.${name}`))
      for (const name of [...layers, 'snake1'])
        expectWithin(
          traced.get(name)!,
          timeMajor(tiny.get(`decode5.${name.replace('block.', 'block')}`)),
          1e-4,
          1e-4,
          name,
        )
    })

    test('encode', async () => {
      const wave = tiny.get('encode.wave').data
      const { encoder } = await dac.programs()
      const traced = await encoder.trace({ wave }, counts(44))
      const latent = traced.find(({ name }) => name === 'latent')!
      expectWithin(latent.data, timeMajor(tiny.get('encode.latent')), 1e-4, 1e-4)
      const [codes, want] = [await dac.encode(wave), byFrame(tiny.get('encode.codes'))]
      const margin = timeMajor(tiny.get('encode.margin'))
      expect(codes.length).toBe(44 * 9)
      for (let frame = 0; frame < 44; frame++) {
        const own = [...codes.subarray(frame * 9, frame * 9 + 9)]
        const flipped = own.findIndex((code, i) => code !== want[frame * 9 + i])
        if (flipped >= 0) expect(margin[frame * 9 + flipped], `frame ${frame}`).toBeLessThan(1e-4)
      }
    })
  })

  describe('dac-nano', () => {
    let dac: LoadedDac
    beforeAll(async () => {
      dac = await loadDac(nanoModel, { device })
    })
    afterAll(() => dac.dispose())

    test('codes to audio', async () => {
      expectWithin(await dac.decode(byFrame(nano.get('enc.codes'))), nano.get('enc.decoded').data, 2e-5, 0)
      expectWithin(await dac.decode(byFrame(nano.get('t1.greedy'))), nano.get('t1.wave').data, 2e-5, 0)
    })

    test('audio to codes', async () => {
      expect(await dac.encode(nano.get('enc.wav').data)).toEqual(byFrame(nano.get('enc.codes')))
    })
  })
})

test('half precision: f16 weights and operands cost little', async () => {
  await using device = await openDevice('webgpu')
  expect(device.target.operand).toBe('f16')
  const dac = await loadDac(nanoModel, { device })
  const [wave, want] = [await dac.decode(byFrame(nano.get('enc.codes'))), nano.get('enc.decoded').data]
  expectWithin(wave, want, 2e-3, 0) // 100 times the f32 tolerance: what f16 may cost
  expect(cosine(wave, want)).toBeGreaterThan(0.9999)
  expect(await dac.encode(nano.get('enc.wav').data)).toEqual(byFrame(nano.get('enc.codes'))) // f32 all the same
})

describe('pieces', () => {
  let device: Device
  let dac: LoadedDac
  beforeAll(async () => {
    device = cpuDevice('test')
    dac = await loadDac(fixtureModel('dac-tiny'), { device })
  })

  test('a decode in several runs equals one run', async () => {
    const codes = randomCodes(300)
    const wave = await dac.decode(codes)
    expect(wave.length).toBe(300 * 512)
    const { decoder } = await dac.programs()
    const ofBook = (i: number) => codes.filter((_, at) => at % 9 === i)
    const inputs = Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`codes.${i}`, ofBook(i)]))
    const whole = await decoder.run(inputs, counts(300))
    expectClose(wave, whole.wave!, 1e-5)
  })

  test.each([[[31, 1, 1, 7]], [[3, 2, 40]], [[9]]])('frames that come as %j stream as they decode', async (sizes) => {
    const frames = sizes.reduce((a, b) => a + b)
    const codes = randomCodes(frames, 5)
    let [sent, ended] = [0, false]
    async function* source() {
      for (const size of sizes) {
        sent += size
        yield codes.subarray((sent - size) * 9, sent * 9)
      }
      ended = true
    }
    const pieces: Float32Array[] = []
    let samples = 0
    for await (const piece of dac.stream(source())) {
      pieces.push(piece)
      samples += piece.length
      if (!ended) expect(samples).toBe((sent - 10) * 512) // all whose context has come
    }
    if (sizes.length > 1) expect(pieces.length).toBeGreaterThan(1)
    const wave = new Float32Array(frames * 512)
    let at = 0
    for (const piece of pieces) {
      wave.set(piece, at)
      at += piece.length
    }
    expect(at).toBe(wave.length)
    expectClose(wave, await dac.decode(codes), 1e-5)
  })

  test('an encode in several runs equals one run', async () => {
    const wave = Float32Array.from({ length: 290 * 512 - 77 }, (_, i) => Math.sin(i / 9) * Math.sin(i / 4321) * 0.5)
    const codes = await dac.encode(wave)
    expect(codes.length).toBe(290 * 9)
    const padded = new Float32Array(290 * 512)
    padded.set(wave)
    const whole = await (await dac.programs()).encoder.run({ wave: padded }, counts(290))
    for (let i = 0; i < 9; i++) expect([...whole[`codes.${i}`]!]).toEqual([...codes.filter((_, at) => at % 9 === i)])
  })

  test('one sample makes a frame', async () => expect(await dac.encode(Float32Array.of(0.1))).toHaveLength(9))
})

test('odd strides leave out samples at the end, and in pieces the same', async () => {
  const dac = await loadDac(randomCodec([5, 2, 3]), { device: cpuDevice('test') })
  const codes = randomCodes(600).subarray(0, 600 * 2)
  const wave = await dac.decode(codes)
  expect(wave.length).toBe(((600 * 5 - 1) * 2 - 0) * 3 - 1)
  const { decoder, encoder } = await dac.programs()
  const ofBook = (i: number) => codes.filter((_, at) => at % 2 === i)
  const whole = await decoder.run({ 'codes.0': ofBook(0), 'codes.1': ofBook(1) }, counts(600))
  expectClose(wave, whole.wave!.subarray(0, wave.length), 1e-5)
  const own = await dac.encode(wave)
  expect(own.length).toBe(600 * 2)
  const padded = new Float32Array(600 * 30)
  padded.set(wave)
  const { 'codes.1': want } = await encoder.run({ wave: padded }, counts(600))
  expect([...want!]).toEqual([...own.filter((_, at) => at % 2 === 1)])
})

test('on WebGPU too a decode in several runs equals one run, bit for bit', async () => {
  await using device = await openDevice('webgpu', { precision: 'f32' })
  const dac = await loadDac(fixtureModel('dac-tiny'), { device })
  const codes = randomCodes(270, 3)
  const [whole, part] = [await dac.decode(codes), await dac.decode(codes.subarray(0, 9 * 250))]
  expect(whole.length).toBe(270 * 512)
  expectClose(whole.subarray(0, 240 * 512), part.subarray(0, 240 * 512), 0)
})

describe('what cannot be served', () => {
  test('is a typed error, and nothing runs', async () => {
    const dac = await loadDac(fixtureModel('dac-tiny'), { device: cpuDevice('test') })
    const input = { name: 'InputError', code: 'input' }
    const with1024 = randomCodes(2).map((code, i) => (i === 12 ? 1024 : code))
    await expect(dac.decode([])).rejects.toMatchObject(input)
    await expect(dac.decode(randomCodes(2).subarray(1))).rejects.toThrow('17 values, expected frames of 9 codes each')
    await expect(dac.decode(with1024)).rejects.toThrow('frame 1 has code 1024 of codebook 3, expected 0 to 1023')
    await expect(dac.decode([0, 0, 0, 0, -1, 0, 0, 0, 0])).rejects.toMatchObject(input)
    await expect(dac.decode([0, 0, 0, 0, 0.5, 0, 0, 0, 0])).rejects.toMatchObject(input)
    await expect(dac.encode(new Float32Array())).rejects.toMatchObject(input)
    await expect(dac.encode(Float32Array.of(0, Number.NaN))).rejects.toThrow('sample 1 is NaN')
    await expect(dac.stream([]).next()).rejects.toMatchObject(input)
    await expect(dac.stream([with1024]).next()).rejects.toMatchObject(input)
  })

  test('an abort is heard between and within runs', async () => {
    const dac = await loadDac(fixtureModel('dac-tiny'), { device: cpuDevice('test') })
    const reason = new Error('enough')
    await expect(dac.decode(randomCodes(2), { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
    await expect(dac.encode(new Float32Array(512), { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
    const controller = new AbortController()
    const pieces = dac.stream([randomCodes(40), randomCodes(40)], { signal: controller.signal })
    expect((await pieces.next()).value).toHaveLength(30 * 512)
    controller.abort(reason)
    await expect(pieces.next()).rejects.toBe(reason)
    const long = new AbortController()
    setTimeout(() => long.abort(reason), 20)
    await expect(dac.decode(randomCodes(2000), { signal: long.signal })).rejects.toBe(reason)
    expect(await dac.decode(randomCodes(1))).toHaveLength(512)
  })

  test('a weight that is not a number is found', async () => {
    const bias = f32('decoder.conv1.bias', [64], new Array(64).fill(Number.NaN))
    const dac = await loadDac(tinyFiles({ 'decoder.conv1.bias': bias }), { device: cpuDevice('test') })
    await expect(dac.decode(randomCodes(1))).rejects.toMatchObject({ name: 'WeightsError', code: 'format' })
  })

  test('dispose frees what was loaded', async () => {
    const device = cpuDevice('test')
    const dac = await loadDac(fixtureModel('dac-tiny'), { device })
    expect(device.memory.buffers).toBeGreaterThan(200)
    dac.dispose()
    expect(device.memory.buffers).toBe(0)
  })
})
