import { expect, test } from 'vitest'
import activation from '../../../shaders/lib/activation.wgsl' with { type: 'text' }
import { cpuDevice } from '../../../src/device/cpu.ts'
import { record } from '../../../src/graph/graph.ts'
import type { Kernel } from '../../../src/graph/kernel.ts'
import { last } from '../../../src/graph/tensor.ts'
import { gelu, geluTanh, sigmoid, silu, softplus } from '../../../src/kernels/lib/activation.ts'
import { type Case, expectWithin, gpu, runOn } from '../../check.ts'
import { fixtureTensors } from '../../fixtures.ts'

const functions = { sigmoid, silu, softplus, gelu, gelu_tanh: geluTanh }
const goldens = fixtureTensors('ops/ops.safetensors')
const far = [-1e4, -1000, -104, -89, -80, -20, -5, -1e-6, 0, 1e-6, 5, 19.99, 20.01, 80, 89, 104, 1000, 1e4]

/** A kernel of one call, for this test only. */
const kernel = (name: keyof typeof functions): Kernel => ({
  name,
  reads: ['x'],
  writes: ['y'],
  shader: [
    activation,
    `@group(0) @binding(0) var<storage, read> x: array<f32>;
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(1) fn main(@builtin(workgroup_id) at: vec3u) { y[at.x] = ${name}(x[at.x]); }`,
  ],
  cost: () => ({ flops: 0, bytes: 0 }),
  cpu({ x, y }) {
    y!.set(x!.map(functions[name]))
  },
})

const call = (name: keyof typeof functions, x: Float32Array): Case => ({
  operands: { x: { shape: [1, x.length], data: x } },
  op: ({ x }) =>
    record(kernel(name), {
      reads: { x: x! },
      writes: { y: { shape: x!.shape } },
      constants: {},
      workgroups: [last(x!), 1, 1],
    }),
})

test.each(['sigmoid', 'silu', 'softplus'] as const)('%s', async (name) => {
  const x = goldens.get('act.x').data
  const want = goldens.get(`act.${name}`).data
  for (const device of [cpuDevice('test'), await gpu()]) {
    const { y } = await runOn(device, call(name, x))
    expectWithin(y!, want, 1e-30, 1e-5, `golden on ${device.kind}`)
    // WGSL lets exp err by 3 + 2|x| ulp: 2e-5 at 89
    const { y: extreme } = await runOn(device, call(name, Float32Array.from(far)))
    expectWithin(extreme!, Float32Array.from(far, functions[name]), 1e-30, 2e-5, `far out on ${device.kind}`)
    expect([...extreme!].every(Number.isFinite)).toBe(true)
  }
})

// PyTorch takes 1 + erf(x) and 1 + tanh(u) in f32, which leaves nothing of small tails: hence absolute
test.each([
  ['gelu', 'gelu_erf'],
  ['gelu_tanh', 'gelu_tanh'],
] as const)('%s', async (name, stored) => {
  const x = goldens.get('act.x').data
  for (const device of [cpuDevice('test'), await gpu()]) {
    const { y } = await runOn(device, call(name, x))
    expectWithin(y!, goldens.get(`act.${stored}`).data, 1e-6, 1e-6, `golden on ${device.kind}`)
    const { y: extreme } = await runOn(device, call(name, Float32Array.from(far)))
    expectWithin(extreme!, Float32Array.from(far, functions[name]), 1e-6, 1e-6, `far out on ${device.kind}`)
    expect([...extreme!].every(Number.isFinite)).toBe(true)
  }
})

test('gelu by the error function, where its series and its fraction meet', () => {
  const phi = { 0.5: 0.6914624612740131, 2.8: 0.9974448696695721, 3: 0.9986501019683699, 6: 0.9999999990134123 }
  for (const [x, p] of Object.entries(phi)) {
    expect(gelu(Number(x)) / Number(x)).toBeCloseTo(p, 14)
    expect(gelu(-Number(x)) / -Number(x)).toBeCloseTo(1 - p, 14)
  }
})
