import { expect, test } from 'vitest'
import type { Device } from '../../../src/device/device.ts'
import { type Probe, prove } from '../../../src/device/prove.ts'
import { rememberedVerdicts } from '../../../src/device/verdicts.ts'
import type { Target } from '../../../src/graph/target.ts'
import { variantProbes } from '../../../src/kernels/lib/probes.ts'
import { gpu } from '../../check.ts'

/** What is switched off on the device, if it had this target. */
async function failing(device: Device, target: Target, probes: readonly Probe[]): Promise<string[]> {
  const failed: string[] = []
  const disable = (variant: string, reason: string) => void failed.push(`${variant}: ${reason}`)
  const own = Object.create(device, { target: { value: target }, disable: { value: disable } })
  await prove(own, probes, rememberedVerdicts({ read: async () => undefined, write: async () => {} }))
  return failed
}

test('the adapter here passes every probe that fits, and hardware fits some', async () => {
  const device = await gpu()
  expect(await failing(device, device.target, variantProbes)).toEqual([])
  expect(variantProbes.some((probe) => probe.fits(device.target))).toBe(!device.target.software)
})

test('plain kernels in half precision are far within what their variants are held to', async () => {
  const device = await gpu()
  const half = { ...device.target, operand: 'f16', cache: 'f16', software: true } as const
  const strict = variantProbes.map((probe) => ({ ...probe, fits: () => true, tolerance: probe.tolerance / 4 }))
  expect(strict.length).toBeGreaterThan(10)
  expect(await failing(device, half, strict)).toEqual([])
})
