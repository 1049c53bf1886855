import { expect, test } from 'vitest'
import { cpuDevice, cpuTarget } from '../../../src/device/cpu.ts'
import { prove } from '../../../src/device/prove.ts'
import { rememberedVerdicts } from '../../../src/device/verdicts.ts'
import { Graph } from '../../../src/graph/graph.ts'
import type { Target } from '../../../src/graph/target.ts'
import { linearProbes } from '../../../src/kernels/lib/linear_probes.ts'

const limits = { ...cpuTarget.limits, workgroupBytes: 48 * 1024, invocations: 1024 }
const hardware: Target = { ...cpuTarget, kind: 'webgpu', software: false, operand: 'f16', limits }
const units: Target = {
  ...hardware,
  features: new Set(['chromium-experimental-subgroup-matrix', 'shader-f16', 'subgroups']),
  matrix: { M: 16, N: 16, K: 16 },
  subgroupSize: 32,
}
const fitting = (target: Target): string[] => linearProbes.filter((p) => p.fits(target)).map((p) => p.variant)

test('there is one for each variant that the target picks', () => {
  expect(fitting(cpuTarget)).toEqual([])
  expect(fitting(hardware)).toEqual(['linear_tiled', 'linear_dot', 'linear_few'])
  expect(fitting({ ...hardware, operand: 'f32' })).toEqual(['linear_tiled', 'linear_dot', 'linear_few'])
  expect(fitting(units)).toContain('linear_matrix')
  expect(fitting({ ...units, disabled: new Map([['linear_matrix', 'wrong']]) })).toEqual([
    'linear_tiled',
    'linear_dot',
    'linear_few',
  ])
})

test('a run takes one tile of each product, and the rows make it take every tile', () => {
  const graph = new Graph(units)
  linearProbes[0]!.record(graph, () => expect.unreachable('products need no pool'))
  const ran = graph.steps.filter((step) => step.workgroups({ T: 75, S: 1, C: 1, R: 1 })[0] > 0)
  const kernels = ran.map((step) => step.kernel.name).sort()
  expect(kernels).toEqual([
    'add_rms_norm',
    'linear_dot',
    'linear_few',
    'linear_few',
    ...Array.from({ length: 10 }, () => 'linear_matrix'),
  ])
  expect(new Set(ran.map(({ constants }) => constants.SL))).toContain(2)
  expect(new Set(ran.map((step) => `${step.constants.BM} x ${step.constants.BN}`)).size).toBeGreaterThan(2)
})

test('pass where the variant is as its twin', async () => {
  const device = cpuDevice('test')
  const disabled: string[] = []
  const same = { ...device, target: units, report: device.report, disable: (name: string) => void disabled.push(name) }
  await prove(same, linearProbes, rememberedVerdicts({ read: async () => undefined, write: async () => {} }))
  expect(disabled).toEqual([])
})
