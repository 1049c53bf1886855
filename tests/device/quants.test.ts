import { describe, expect, test } from 'vitest'
import { cpuDevice } from '../../src/device/cpu.ts'
import { decode, encode } from '../../src/device/formats.ts'
import { dequantized, GROUP, quantize, quantized } from '../../src/device/quants.ts'
import { gpu, noise } from '../check.ts'

describe('q8', () => {
  test('is off by half a step of a group at most, and what is a step is exact', () => {
    const weights = noise(8 * GROUP).map((v, i) => v * 2 ** -Math.floor(i / GROUP))
    const back = dequantized(quantized(weights))
    for (let group = 0; group < 8; group++) {
      const own = weights.subarray(group * GROUP, (group + 1) * GROUP)
      const step = own.reduce((most, v) => Math.max(most, Math.abs(v)), 0) / 127
      const error = own.map((v, i) => Math.abs(back[group * GROUP + i]! - v))
      const most = error.reduce((a, b) => Math.max(a, b))
      expect(most).toBeLessThan(0.5 * step + 127 * step * 2 ** -10) // the scale is an f16
      expect(most).toBeGreaterThan(0.1 * step)
    }
    const steps = Float32Array.from({ length: GROUP }, (_, i) => (i === 0 ? 127 : i - 16) / 64)
    expect(dequantized(quantized(steps))).toEqual(steps)
  })

  test('has zeros for zeros, and its scales behind all quants', () => {
    expect(dequantized(quantized(new Float32Array(2 * GROUP)))).toEqual(new Float32Array(2 * GROUP))
    const { quants, scales } = quantize(noise(3 * GROUP))
    const bytes = encode(noise(3 * GROUP), 'q8')
    expect(bytes.length).toBe(3 * GROUP + 8) // three scales, padded
    expect([...bytes.subarray(0, 3 * GROUP)]).toEqual([...new Uint8Array(quants.buffer)])
    expect([...bytes.subarray(3 * GROUP, 3 * GROUP + 6)]).toEqual([...new Uint8Array(scales.buffer)])
    expect(decode(bytes, 'q8')).toHaveLength(3 * GROUP)
  })

  test.each(['cpu', 'webgpu'])('is kept on %s as it is written', async (kind) => {
    const device = kind === 'cpu' ? cpuDevice('test') : await gpu()
    const t = device.keep('w', [2, 2 * GROUP], 'q8')
    const bytes = encode(noise(4 * GROUP), 'q8')
    device.write(t, bytes.subarray(0, 64))
    device.write(t, bytes.subarray(64), 64)
    expect(await device.read(t)).toEqual(bytes)
    device.release(t)
  })
})
