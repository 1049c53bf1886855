import { afterAll, describe, expect, test } from 'vitest'
import { cosine, greatest, largestDifference, siSdr } from '../../../src/apps/parity/measures.ts'
import { printParity } from '../../../src/apps/parity/print.ts'
import { LARGEST_F32_DIFFERENCE, LEAST_F16_COSINE, speechParity } from '../../../src/apps/parity/speech.ts'
import { cpuDevice } from '../../../src/device/cpu.ts'
import type { Device } from '../../../src/device/device.ts'
import { openDevice } from '../../../src/device/open.ts'
import { noise } from '../../check.ts'

const nano = { model: 'public/models/zonos-nano', codec: 'public/models/dac-nano', frames: 4 }
const reference = cpuDevice('test')
const opened: Device[] = []
afterAll(async () => {
  for (const device of opened) await device.dispose()
})

/** A CPU whose outputs are off by a little of their own size. */
function off(by: number, operand: 'f32' | 'f16' = 'f32'): Device {
  const device = cpuDevice('test')
  const compile: Device['compile'] = async (graph) => {
    const program = await device.compile(graph)
    const run: typeof program.run = async (inputs, counts, options) =>
      Object.fromEntries(
        Object.entries(await program.run(inputs, counts, options)).map(([name, values]) => {
          const errors = noise(values.length, 7)
          return [name, values.map((v, i) => v + by * errors[i]!)]
        }),
      )
    return Object.create(program, { run: { value: run } })
  }
  const target = { ...device.target, operand }
  return Object.create(device, { compile: { value: compile }, target: { value: target } })
}

describe('measures', () => {
  test('of vectors', () => {
    expect(cosine([3, 4], [6, 8])).toBeCloseTo(1, 12)
    expect(cosine([1, 0], [0, 1])).toBe(0)
    expect(cosine([1, 1], [-1, -1])).toBeCloseTo(-1, 12)
    expect(greatest([1, 5, 5, 2])).toBe(1)
    expect(largestDifference([1, 2, 3], [1, 4, 3.5])).toBe(2)
    expect(largestDifference([1, Number.NaN, 3], [1, 2, 3])).toBeNaN()
    expect(largestDifference([1, 2], [1, 2, 3])).toBe(Number.POSITIVE_INFINITY)
  })
  test('SI-SDR counts what is not the signal, however loud the signal is', () => {
    const [signal, other] = [Float64Array.of(1, -1, 1, -1), Float64Array.of(1, 1, -1, -1)] // orthogonal
    expect(
      siSdr(
        signal.map((v) => 3 * v),
        signal,
      ),
    ).toBe(Number.POSITIVE_INFINITY)
    const mixed = signal.map((v, i) => v + 0.1 * other[i]!)
    expect(siSdr(mixed, signal)).toBeCloseTo(20, 10)
    expect(
      siSdr(
        mixed.map((v) => 5 * v),
        signal,
      ),
    ).toBeCloseTo(20, 10)
  })
})

test('a device that computes the same has no drift', async () => {
  const steps: string[] = []
  const same = cpuDevice('test')
  const { frames, seconds, drifts } = await speechParity(reference, [same], { ...nano, onStep: (s) => steps.push(s) })
  expect(frames).toBe(4)
  expect(seconds).toBeCloseTo((4 * 512) / 44100, 12)
  expect(drifts).toEqual([
    {
      device: same.report.line,
      precision: 'f32',
      logits: {
        meanCosine: expect.closeTo(1, 12),
        minCosine: expect.closeTo(1, 12),
        largestDifference: 0,
        agreement: new Array(9).fill(1),
      },
      wave: { siSdrDb: Number.POSITIVE_INFINITY, largestDifference: 0 },
      broken: [],
    },
  ])
  expect(steps.length).toBe(2)
  for (const device of [reference, same]) expect(device.memory.keptBytes).toBe(0)
})

test('one that is off is found out, by the bounds of its precision', async () => {
  const { drifts } = await speechParity(reference, [off(1e-3), off(1e-3, 'f16'), off(2, 'f16')], nano)
  const [f32, f16, wild] = drifts
  expect(f32!.logits.largestDifference).toBeGreaterThan(LARGEST_F32_DIFFERENCE)
  expect(f32!.broken).toEqual([
    expect.stringMatching(/^the largest difference of a logit is 0\.00\d+, expected at most 0\.0001$/),
    expect.stringMatching(/^the largest difference of a sample is 0\.00\d+, expected at most 0\.0001$/),
  ])
  expect(f16!.broken).toEqual([])
  expect(wild!.logits.minCosine).toBeLessThan(LEAST_F16_COSINE)
  expect(wild!.broken).toEqual([
    expect.stringMatching(/^the least cosine of logits is 0\.9\d+, expected at least 0\.9995$/),
  ])
})

test('WebGPU in f32 equals the CPU, and stays near it in f16', async () => {
  for (const precision of ['f32', 'auto'] as const) opened.push(await openDevice('webgpu', { precision }))
  const { drifts } = await speechParity(reference, opened, { ...nano, frames: 8 })
  expect(drifts.map(({ precision }) => precision)).toEqual(['f32', 'f16'])
  expect(drifts.flatMap(({ broken }) => broken)).toEqual([])
  const [f32, f16] = drifts
  expect(f32!.logits.agreement).toEqual(new Array(9).fill(1))
  expect(f32!.wave.siSdrDb).toBeGreaterThan(100)
  expect(f16!.wave.siSdrDb).toBeGreaterThan(50)
  expect(f16!.logits.largestDifference).toBeGreaterThan(f32!.logits.largestDifference)
})

test('frames that are no number of frames are refused', async () => {
  await expect(speechParity(reference, [], { ...nano, frames: 0 })).rejects.toThrow('parity: frames is 0')
})

test('is printed with a column for each device', () => {
  const logits = { meanCosine: 1, minCosine: 0.9999, largestDifference: 3.4e-5, agreement: [1, 0.5] }
  const drift = { logits, wave: { siSdrDb: 71.7, largestDifference: 2.5e-7 }, broken: [] }
  const drifts = [
    { ...drift, device: 'A', precision: 'f32' as const },
    { ...drift, device: 'B', precision: 'f16' as const },
  ]
  expect(printParity({ reference: 'CPU', frames: 96, seconds: 1.1146, drifts })).toBe(
    [
      'reference: CPU',
      'device: A',
      'device: B',
      '96 frames of codes, 1.11 s',
      '                                  f32         f16',
      'logits: least cosine              0.99990000  0.99990000',
      'logits: mean cosine               1.00000000  1.00000000',
      'logits: largest difference        3.4e-5      3.4e-5',
      'same first choice, all codebooks  75.0 %      75.0 %',
      'same first choice, each           100 50      100 50',
      'samples: SI-SDR                   71.7 dB     71.7 dB',
      'samples: largest difference       2.5e-7      2.5e-7',
      '',
    ].join('\n'),
  )
})
