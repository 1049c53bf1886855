import { expect, test } from 'vitest'
import { cpuTarget } from '../../src/device/cpu.ts'
import { Graph } from '../../src/graph/graph.ts'
import { maxTokens, plan, slotBytes } from '../../src/graph/plan.ts'
import { rmsNorm } from '../../src/kernels/rms_norm.ts'
import { swiglu } from '../../src/kernels/swiglu.ts'
import { tensor } from '../../src/graph/tensor.ts'

const weight = (n: number) => tensor({ label: 'w', shape: [n], format: 'f32', place: 'kept' })

function chain(length: number): Graph {
  const graph = new Graph(cpuTarget)
  let y = graph.input('x', ['T', 8])
  for (let i = 0; i < length; i++) y = rmsNorm(y, weight(8), { eps: 1e-6, offset: 0 })
  graph.output('y', y)
  return graph
}

test('a long chain needs two slots beside its input and output', () => {
  const graph = chain(20)
  const { slots, slotOf } = plan(graph)
  expect(slots).toEqual(Array.from({ length: 4 }, () => ({ fixed: 0, perToken: 32 })))
  for (const { kernel, bindings } of graph.steps) {
    const read = kernel.reads.filter((name) => bindings[name]!.place !== 'kept').map((name) => slotOf(bindings[name]!))
    expect(read).not.toContain(slotOf(bindings[kernel.writes[0]!]!))
  }
})

test('no two values that live at once share a slot', () => {
  const graph = new Graph(cpuTarget)
  const x = graph.input('x', ['T', 16])
  const a = swiglu(x)
  const b = rmsNorm(a, weight(8), { eps: 1e-6, offset: 0 })
  const c = rmsNorm(a, weight(8), { eps: 1e-6, offset: 0 }) // a and b live on
  graph.output('b', b)
  graph.output('c', c)
  const { slotOf } = plan(graph)
  expect(new Set([x, a, b, c].map(slotOf)).size).toBe(4)
})

test('slots come largest first, and the most tokens are a power of two that fits a binding', () => {
  const p = plan(chain(3))
  expect(p.slots.map((s) => s.perToken)).toEqual([...p.slots].map((s) => s.perToken).sort((a, b) => b - a))
  expect(maxTokens(p, 32 * 4096 - 1)).toBe(2048)
  expect(maxTokens(p, 32 * 4096)).toBe(4096)
  expect(slotBytes({ fixed: 100, perToken: 8 }, 4)).toBe(100)
})

test('a tensor of no step has no slot', () => {
  const graph = chain(1)
  expect(() => plan(graph).slotOf(graph.input('late', ['T', 2]))).toThrow('plan: late [T,2] is used by no step')
})
