import { expect, test } from 'vitest'
import { cpuDevice, cpuTarget } from '../../../src/device/cpu.ts'
import { Graph } from '../../../src/graph/graph.ts'
import type { Target } from '../../../src/graph/target.ts'
import { elements } from '../../../src/graph/tensor.ts'
import { layerProbes } from '../../../src/kernels/lib/layer_probes.ts'
import { noise } from '../../check.ts'
import { withUnits } from '../matrix_units.ts'

const limits = { ...cpuTarget.limits, workgroupBytes: 48 * 1024, invocations: 1024 }
const plain: Target = { ...cpuTarget, kind: 'webgpu', software: false, limits }
const units = withUnits({ ...plain, operand: 'f16', cache: 'f16' }, 16)

test.each(layerProbes.map((probe) => [probe.variant, probe] as const))('%s is in its probe', async (variant, probe) => {
  const hardware = variant.endsWith('_matrix') ? units : plain
  expect(probe.fits(hardware)).toBe(true)
  expect(probe.fits(plain)).toBe(hardware === plain)
  expect(probe.fits(cpuTarget)).toBe(false)
  const device = cpuDevice('test')
  const graph = new Graph(hardware)
  const given = probe.record(graph, (shape, format, rows) => device.keep('pool', shape, format, rows))
  const kernels = graph.steps.map(({ kernel }) => kernel)
  expect(kernels.map(({ name }) => name)).toContain(variant)
  const inputs = Object.fromEntries(
    [...graph.inputs].map(([name, t], i) => [name, noise(elements(t, probe.counts), i + 1)]),
  )
  const outputs = await (await device.compile(graph)).run({ ...inputs, ...given }, probe.counts)
  expect(Object.keys(outputs).length).toBeGreaterThan(0)
  for (const [name, values] of Object.entries(outputs)) {
    expect(values.every(Number.isFinite), name).toBe(true)
    expect(
      values.some((v) => Math.abs(v) > 1e-4),
      `${name} is not all but zero`,
    ).toBe(true)
  }
})

test('of variants that stand in for one another only those are tried that would run', () => {
  const fitting = (target: Target): string[] =>
    layerProbes
      .filter((probe) => probe.fits(target))
      .flatMap(({ variant }) => variant.match(/attention_(matrix|tiled)/)?.[0] ?? [])
  expect(fitting(units)).toEqual(['attention_matrix'])
  expect(fitting({ ...units, disabled: new Map([['attention_matrix', 'wrong there']]) })).toEqual(['attention_tiled'])
  expect(fitting(plain)).toEqual(['attention_tiled'])
})
