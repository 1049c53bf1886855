import { describe, expect, test } from 'vitest'
import { cpuDevice } from '../../src/device/cpu.ts'
import { Graph } from '../../src/graph/graph.ts'
import { silu } from '../../src/kernels/lib/activation.ts'
import { gatherRows } from '../../src/kernels/gather_rows.ts'
import { swiglu } from '../../src/kernels/swiglu.ts'
import { type Case, expectClose, expectWithin, gpu, runOn, sameOnEveryDevice } from '../check.ts'
import { fixtureTensors } from '../fixtures.ts'

const goldens = fixtureTensors('ops/ops.safetensors')
const x = goldens.get('act.x').data

const gated = (gate: Float32Array, up: number): Case => ({
  operands: { x: { shape: [1, 2 * gate.length], data: Float32Array.from([...gate, ...gate.map(() => up)]) } },
  op: ({ x }) => ({ y: swiglu(x!) }),
  kernels: ['swiglu'],
})

test('goldens', async () => {
  const want = goldens.get('act.silu').data
  for (const device of [cpuDevice('test'), await gpu()]) {
    const { y } = await runOn(device, gated(x, 1))
    expectWithin(y!, want, 1e-6, 1e-5, device.kind)
  }
})

describe('is the same on every device', () => {
  test.each([
    [1, 1],
    [3, 5],
    [70, 33],
    [2, 3584],
  ])('%i tokens, width %i', (T, width) =>
    sameOnEveryDevice({
      operands: { x: { shape: ['T', 2 * width] } },
      counts: { T },
      op: ({ x }) => ({ y: swiglu(x!) }),
      kernels: ['swiglu'],
    }),
  )

  test('far out, where exp overflows', async () => {
    const far = Float32Array.of(-1e4, -1000, -104, -90, -88, -20, -1e-8, 0, 1e-8, 20, 88, 90, 1000, 1e4)
    const { y } = await runOn(await gpu(), gated(far, 2))
    expectClose(
      y!,
      far.map((v) => 2 * silu(v)),
      1e-5,
    )
    await sameOnEveryDevice(gated(far, 2))
  })

  test('half-precision values', () =>
    sameOnEveryDevice({
      operands: { x: { shape: ['T', 52] }, index: { shape: ['R'], format: 'u32', data: Uint32Array.of(4, 0) } },
      counts: { T: 5, R: 2 },
      op: ({ x, index }) => ({
        y: gatherRows(swiglu(swiglu(x!, { format: 'f16' }), { format: 'f16' }), index!),
      }),
      tolerance: 1e-3, // f16 rounds by 2^-11
    }))
})

test('says what does not fit', () => {
  const graph = new Graph(cpuDevice('test').target)
  expect(() => swiglu(graph.input('odd', ['T', 7]))).toThrow('x (odd) has 7 columns, expected gate and up')
  expect(() => swiglu(graph.input('cube', ['T', 2, 8]))).toThrow('shape [T,2,8], expected [T,8]')
  expect(() => swiglu(graph.input('ids', ['T', 8], 'u32'))).toThrow('format u32, expected f32 or f16')
})
