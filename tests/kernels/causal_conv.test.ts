import { expect, test } from 'vitest'
import { cpuDevice } from '../../src/device/cpu.ts'
import { ShapeError } from '../../src/errors.ts'
import { Graph } from '../../src/graph/graph.ts'
import { causalConv } from '../../src/kernels/causal_conv.ts'
import { type Case, expectClose, expectWithin, gpu, noise, runOn, sameOnEveryDevice } from '../check.ts'
import { fixtureTensors } from '../fixtures.ts'
import { type Slots, tableOperands } from './delta_cases.ts'

interface Conv extends Slots {
  readonly lengths: readonly number[]
  readonly channels: number
  readonly column?: number
  readonly wide?: number
  readonly kernel?: number
  readonly x?: Float32Array
  readonly w?: Float32Array
  readonly state?: Float32Array
}

function convCase({ lengths, from, to, channels, column = 0, wide = channels, kernel = 4, ...data }: Conv): Case {
  const { counts, operands } = tableOperands(lengths, from, to)
  return {
    counts,
    operands: {
      ...operands,
      x: { shape: ['T', wide], data: data.x ?? noise(counts.T * wide, 1) },
      w: { shape: [channels, 1, kernel], data: data.w ?? noise(channels * kernel, 2), kept: true },
      state: {
        shape: ['*', kernel - 1, channels],
        data: data.state ?? noise(9 * (kernel - 1) * channels, 3), // slot 0 too: nobody may read it
        kept: true,
      },
    },
    op: ({ x, w, state, segments, segmentOf }) => ({
      y: causalConv(x!, { channels, column, kernel }, w!, state!, { segments: segments!, segmentOf: segmentOf! }),
      state: state!,
    }),
    kernels: ['causal_conv'],
  }
}

const file = fixtureTensors('ops/ops.safetensors')
const cpu = cpuDevice('test')
const w = file.get('conv.weight').data

test.each([1, 2, 3, 4, 5, 6, 7, 8, 70])('%i tokens as PyTorch', async (T) => {
  const { data: x, shape } = file.get(`conv.T${T}.x`)
  for (const device of [cpu, await gpu()]) {
    const { y } = await runOn(device, convCase({ lengths: [T], from: [0], to: [0], channels: shape[1]!, x, w }))
    expectWithin(y!, file.get(`conv.T${T}.silu`).data, 1e-6, 1e-6)
  }
})

test('goes on from a state and leaves one, as PyTorch', async () => {
  const { data: x, shape } = file.get('conv.cont.x')
  const [T, channels] = shape as [number, number]
  const state = new Float32Array(3 * 3 * channels)
  state.set(file.get('conv.cont.state_before').data, 3 * channels)
  for (const device of [cpu, await gpu()]) {
    const results = await runOn(device, convCase({ lengths: [T], from: [1], to: [2], channels, x, w, state }))
    expectWithin(results.y!, file.get('conv.cont.silu').data, 1e-6, 1e-6)
    expect(results.state!.slice(2 * 3 * channels)).toEqual(file.get('conv.cont.state_after').data)
  }
})

test.each([
  { lengths: [1, 2, 3, 4, 70], from: [0, 1, 1, 2, 0], to: [3, 4, 5, 0, 6], channels: 48 },
  { lengths: [5, 1, 1], from: [1, 0, 2], to: [0, 3, 4], channels: 7, column: 3, wide: 13 },
  { lengths: [3, 65], from: [2, 1], to: [3, 4], channels: 6, kernel: 2 },
])('equals its twin: $lengths', (c) => sameOnEveryDevice(convCase(c)))

test('pieces of a row through states are the whole row, and neighbours change nothing', async () => {
  const x = noise(9 * 48, 7)
  const rows = (i: number, j: number): Float32Array => x.slice(i * 48, j * 48)
  const whole = { lengths: [9], from: [0], to: [5], channels: 48, x }
  for (const device of [cpu, await gpu()]) {
    const want = await runOn(device, convCase(whole))
    const y: number[] = []
    let state = noise(9 * 3 * 48, 3)
    for (const [slot, [i, j]] of [
      [0, 2],
      [2, 3],
      [3, 4],
      [4, 9],
    ].entries()) {
      const piece = { lengths: [4, j! - i!], from: [0, slot], to: [0, slot + 1], channels: 48, state }
      const got = await runOn(device, convCase({ ...piece, x: Float32Array.of(...noise(4 * 48, 8), ...rows(i!, j!)) }))
      y.push(...got.y!.slice(4 * 48))
      state = got.state!.slice() as typeof state
    }
    expect(Float32Array.from(y)).toEqual(want.y)
    expectClose(state.slice(4 * 144, 5 * 144), want.state!.slice(5 * 144, 6 * 144), 0)
  }
})

test('wrong shapes are named', () => {
  const g = new Graph(cpu.target)
  const tables = { segments: g.input('segments', ['S', 8], 'u32'), segmentOf: g.input('segmentOf', ['T'], 'u32') }
  const x = g.input('x', ['T', 10])
  const weight = g.input('w', [8, 1, 4])
  const options = { channels: 8, column: 0, kernel: 4 }
  const call = (o: object, state = g.input(`state${g.inputs.size}`, ['*', 3, 8])) =>
    causalConv(x, { ...options, ...o }, weight, state, tables)
  expect(() => call({ column: 3 })).toThrow(ShapeError)
  expect(() => call({ column: 3 })).toThrow('x (x) has 10 columns, expected at least 11')
  expect(() => call({ kernel: 3 })).toThrow('w (w) has shape [8,1,4], expected [8,1,3]')
  expect(() => call({}, g.input('short', ['*', 4, 8]))).toThrow('state (short) has shape [*,4,8], expected [*,3,8]')
})
