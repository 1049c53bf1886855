import { describe, expect, test } from 'vitest'
import { cpuTarget } from '../../src/device/cpu.ts'
import { Graph } from '../../src/graph/graph.ts'
import type { Format, Tensor } from '../../src/graph/tensor.ts'
import { linear, linearMisfit, recordLinear } from '../../src/kernels/linear.ts'
import { gpu, sameOnEveryDevice } from '../check.ts'

const plan = (SK = 1, WORKGROUP = 32) =>
  ({ variant: 'linear_dot', order: { SK, BK: 8 }, heights: [{ tile: { WORKGROUP } }] }) as const

describe('the shader and the twin give the same', () => {
  test.each([
    [1, 24, 3, 'f32', 1],
    [3, 2048, 40, 'bf16', 1],
    [4, 128, 1, 'f16', 2],
    [9, 1000, 17, 'bf16', 3],
  ] as const)('%i rows, %i -> %i, %s weights, in %i parts', (R, IN, OUT, format, SK) =>
    sameOnEveryDevice({
      operands: { x: { shape: ['R', IN] }, w: { shape: [OUT, IN], format: format as Format, kept: true } },
      counts: { T: 50, R },
      op: ({ x, w }) => ({ y: recordLinear(x!, w!, plan(SK)) }),
      kernels: ['linear_dot'],
    }),
  )

  test('with half-precision rows and a residual', () =>
    sameOnEveryDevice({
      operands: {
        x: { shape: ['R', 64], format: 'f16' },
        w: { shape: [5, 64], format: 'f16', kept: true },
        residual: { shape: ['R', 5] },
      },
      counts: { T: 50, R: 6 },
      op: ({ x, w, residual }) => ({ y: recordLinear(x!, w!, plan(), { add: residual! }) }),
      kernels: ['linear_dot'],
    }))
})

test('is picked for what is read out, on hardware and unless it failed', async () => {
  const hardware = { ...cpuTarget, kind: 'webgpu', software: false } as const
  const picked = (target: Graph['target'], rows: 'R' | 'T' = 'R'): string => {
    const graph = new Graph(target)
    linear(graph.input('x', [rows, 64]), weight(graph))
    return graph.steps[0]!.kernel.name
  }
  expect(picked(hardware)).toBe('linear_dot')
  expect(picked(hardware, 'T')).not.toBe('linear_dot')
  expect(picked({ ...hardware, software: true })).toBe('linear')
  expect(picked({ ...hardware, disabled: new Map([['linear_dot', 'wrong there']]) })).not.toBe('linear_dot')
  expect(picked((await gpu()).target)).toBe((await gpu()).target.software ? 'linear' : 'linear_dot')
})

test('says what does not fit', () => {
  const graph = new Graph({ ...cpuTarget, kind: 'webgpu' })
  const x = graph.input('x', ['R', 64])
  expect(linearMisfit(x, weight(graph), plan())).toBe(undefined)
  expect(linearMisfit(x, weight(graph), plan(1, 48))).toBe('48 lanes, expected a power of two')
  expect(linearMisfit(x, weight(graph), plan(1, 512))).toBe('512 invocations, at most 256')
  expect(linearMisfit(x, weight(graph), plan(), { finish: 'swiglu' })).toMatch(/no pairs of gate and up/)
})

const weight = (graph: Graph): Tensor => graph.input(`w ${graph.inputs.size}`, [8, 64])
