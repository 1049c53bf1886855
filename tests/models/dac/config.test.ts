import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { cpuDevice } from '../../../src/device/cpu.ts'
import { WeightsError } from '../../../src/errors.ts'
import { dacConfig } from '../../../src/models/dac/config.ts'
import { loadDac } from '../../../src/models/dac/load.ts'
import { fixtureJson } from '../../fixtures.ts'
import { f32 } from '../../weights/build.ts'
import { tinyFiles } from './fixture.ts'

type Json = Record<string, unknown>
const tiny = () => fixtureJson<Json>('dac-tiny/config.json')

test('reads a config', () => {
  expect(dacConfig(tiny())).toEqual({
    sampleRate: 44100,
    hop: 512,
    latent: 128,
    encoder: { channels: 8, strides: [2, 4, 8, 8] },
    decoder: { channels: 64, strides: [8, 8, 4, 2] },
    codebooks: { count: 9, size: 1024, width: 8 },
  })
})

describe('what is not understood is an error', () => {
  test.each<[string, unknown]>([
    ['model_type', 'encodec'],
    ['sampling_rate', '44100'],
    ['hop_length', 320],
    ['hop_length', undefined],
    ['hidden_size', 1024],
    ['decoder_hidden_size', 24],
    ['downsampling_ratios', [2, 4, 8]],
    ['upsampling_ratios', [8, 8, 8, 1]],
    ['upsampling_ratios', 512],
    ['n_codebooks', 0],
    ['codebook_size', 1e12],
    ['codebook_dim', 8.5],
  ])('%s: %j', (key, value) => {
    const change = () => dacConfig({ ...tiny(), [key]: value })
    expect(change).toThrow(expect.objectContaining({ name: 'WeightsError', code: 'unsupported' }))
  })

  test('not an object', () => {
    for (const json of [null, [], 'x', 3]) expect(() => dacConfig(json)).toThrow('config.json is')
  })

  test('whatever is damaged is read as a whole or refused', () => {
    const seen = { read: 0, refused: 0 }
    const damaged = fc
      .tuple(fc.constantFrom(...Object.keys(tiny())), fc.option(fc.jsonValue(), { nil: undefined }))
      .map(([key, value]) => ({ ...tiny(), [key]: value }))
    fc.assert(
      fc.property(fc.oneof(damaged, fc.jsonValue()), (json) => {
        try {
          const { hop, latent, encoder, decoder, codebooks } = dacConfig(json)
          for (const n of [hop, latent, encoder.channels, decoder.channels, ...Object.values(codebooks)])
            expect(Number.isSafeInteger(n) && n > 0).toBe(true)
          seen.read++
        } catch (error) {
          expect(error).toBeInstanceOf(WeightsError)
          seen.refused++
        }
      }),
      { numRuns: 2000 },
    )
    expect(Math.min(seen.read, seen.refused)).toBeGreaterThan(50)
  })
})

describe('a checkpoint that is not what its config says', () => {
  const load = (...changed: Parameters<typeof tinyFiles>) => {
    const device = cpuDevice('test')
    return { device, loaded: loadDac(tinyFiles(...changed), { device }) }
  }

  test.each<[string, Parameters<typeof tinyFiles>[0], string]>([
    ['weight norm', { 'decoder.conv1.weight': undefined }, 'has no tensor decoder.conv1.weight'],
    [
      'a shape',
      { 'decoder.conv2.weight': f32('decoder.conv2.weight', [1, 4, 1], [1, 2, 3, 4]) },
      '[1,4,1], expected [1,4,7]',
    ],
    ['one tensor more', { 'decoder.conv3.bias': f32('decoder.conv3.bias', [1], [1]) }, 'decoder.conv3.bias'],
  ])('%s', async (_, changes, message) => {
    const { device, loaded } = load(changes)
    await expect(loaded).rejects.toThrow(message)
    await expect(loaded).rejects.toBeInstanceOf(WeightsError)
    expect(device.memory.buffers).toBe(0)
  })

  test('aborted', async () => {
    const device = cpuDevice('test')
    const reason = new Error('enough')
    const loaded = loadDac(tinyFiles({}), { device, signal: AbortSignal.abort(reason) })
    await expect(loaded).rejects.toBe(reason)
    expect(device.memory.buffers).toBe(0)
  })
})
