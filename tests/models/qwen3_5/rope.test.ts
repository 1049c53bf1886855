import { expect, test } from 'vitest'
import { type Positions, type Rope, ropeTable, textRope } from '../../../src/models/qwen3_5/rope.ts'
import { expectWithin } from '../../check.ts'
import { fixtureJson, fixtureTensors } from '../../fixtures.ts'

const ops = fixtureTensors('ops/ops.safetensors')
const { rope: configs } = fixtureJson<{
  rope: Record<string, { theta: number; rotary_dims: number; section: number[] }>
}>('ops/inputs.json')
const cases = Object.entries(configs).map(([name, c]) => {
  const headDim = Number(name.slice(2))
  const rope: Rope = {
    headDim,
    partialRotaryFactor: c.rotary_dims / headDim,
    theta: c.theta,
    mropeSection: c.section,
  }
  return [name, rope] as const
})

/** Rotates [heads, T, D] by a table, as qk_norm_rope does. */
function rotate(x: Float32Array, table: Float32Array, headDim: number, rotary: number): Float32Array {
  const tokens = table.length / rotary
  const half = rotary / 2
  const y = x.slice()
  for (let row = 0; row < x.length / headDim; row++) {
    for (let i = 0; i < half; i++) {
      const [a, b] = [x[row * headDim + i]!, x[row * headDim + half + i]!]
      const cos = table[(row % tokens) * rotary + i]!
      const sin = table[(row % tokens) * rotary + half + i]!
      y[row * headDim + i] = a * cos - b * sin
      y[row * headDim + half + i] = b * cos + a * sin
    }
  }
  return y
}

test('there are cases', () => expect(cases.length).toBeGreaterThan(1))

test.each(cases)('interleaved M-RoPE %s', (name, rope) => {
  const { shape, data } = ops.get(`rope.mrope.${name}.pos`)
  const tokens = shape[1]!
  const axis = (i: number) => [...data.subarray(i * tokens, (i + 1) * tokens)]
  const table = ropeTable([axis(0), axis(1), axis(2)], rope)
  const rotary = rope.headDim * rope.partialRotaryFactor
  const [cos, sin] = [ops.get(`rope.mrope.${name}.cos`).data, ops.get(`rope.mrope.${name}.sin`).data]
  const halves = (second: number) => table.filter((_, i) => Math.floor((i % rotary) / (rotary / 2)) === second)
  const first = (x: Float32Array) => x.filter((_, i) => i % rotary < rotary / 2)
  expectWithin(halves(0), first(cos), 1e-5, 0, 'cos')
  expectWithin(halves(1), first(sin), 1e-5, 0, 'sin')
  const out = rotate(ops.get(`rope.mrope.${name}.x`).data, table, rope.headDim, rotary)
  expectWithin(out, ops.get(`rope.mrope.${name}.out`).data, 1e-5, 0, 'rotated')
})

test.each(cases)('text positions %s', (name, rope) => {
  const positions = [...ops.get(`rope.partial.${name}.pos`).data]
  const table = ropeTable([positions, positions, positions], rope)
  const out = rotate(ops.get(`rope.mrope.${name}.x`).data, table, rope.headDim, rope.headDim * rope.partialRotaryFactor)
  expectWithin(out, ops.get(`rope.partial.${name}.out`).data, 1e-5, 0, 'rotated')
})

test('text counts on along all three axes', () => {
  const rope = cases[0]![1]
  const axis = [5, 6, 7]
  expect(textRope(5, 3, rope)).toEqual(ropeTable([axis, axis, axis], rope))
})

test('a table is the same whether its rows are remembered or not', () => {
  const rope = cases[0]![1]
  const rotary = rope.headDim * rope.partialRotaryFactor
  const whole = textRope(0, 40000, rope) // more rows than are remembered
  expect(textRope(100, 3, rope)).toEqual(whole.subarray(100 * rotary, 103 * rotary))
  expect(textRope(39990, 10, rope)).toEqual(whole.subarray(39990 * rotary))
})

test('rows of text, of an image and of text that starts anew are those of each token alone', () => {
  const rope = cases[0]![1]
  const rotary = rope.headDim * rope.partialRotaryFactor
  const axes: Positions = [
    [0, 1, 2, 3, 3, 3, 5, 6, 0, 1, 20000, 20001],
    [0, 1, 2, 3, 3, 4, 5, 6, 0, 1, 20000, 20001],
    [0, 1, 2, 3, 4, 3, 5, 6, 0, 1, 20000, 20001],
  ]
  const table = ropeTable(axes, rope)
  for (let t = 0; t < axes[0].length; t++) {
    const [time, height, width] = axes.map((axis) => [axis[t]!])
    expect(table.subarray(t * rotary, (t + 1) * rotary)).toEqual(ropeTable([time!, height!, width!], rope))
  }
})

test('wrong shapes are named', () => {
  const rope = cases[0]![1]
  const uneven: Positions = [[1, 2], [1], [1, 2]]
  expect(() => ropeTable(uneven, rope)).toThrow('ropeTable: the axes have 2, 1 and 2 positions, expected equal numbers')
  expect(() => textRope(0, 1, { ...rope, headDim: 10, partialRotaryFactor: 0.5 })).toThrow(
    'ropeTable: headDim 10 · partialRotaryFactor 0.5 is 5, expected an even number',
  )
})
