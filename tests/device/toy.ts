import { type Graph, record } from '../../src/graph/graph.ts'
import { fold, type Kernel } from '../../src/graph/kernel.ts'
import type { Format, Tensor } from '../../src/graph/tensor.ts'
import step from '../../shaders/lib/step.wgsl' with { type: 'text' }

/** Two writes in one dispatch, one of them a pool changed in place: y = x * SCALE, pool[t] += x[t, 0]. */
const source = `
@group(0) @binding(0) var<storage, read> x: array<X>;
@group(0) @binding(1) var<storage, read_write> y: array<Y>;
@group(0) @binding(2) var<storage, read_write> pool: array<POOL>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x >= step.tokens * WIDTH) { return; }
  y[id.x] = Y(f32(x[id.x]) * SCALE);
  if (id.x % WIDTH == 0u) { pool[id.x / WIDTH] += f32(x[id.x]); }
}`

const kernel: Kernel = {
  name: 'toy',
  reads: ['x'],
  writes: ['y', 'pool'],
  shader: [step, source],
  cost: ({ WIDTH = 0 }, { T }) => ({ flops: T * WIDTH, bytes: 8 * T * WIDTH }),
  cpu({ x, y, pool }, { WIDTH = 0, SCALE = 0 }, { T }) {
    for (let i = 0; i < T * WIDTH; i++) {
      y![i] = x![i]! * SCALE
      if (i % WIDTH === 0) pool![i / WIDTH]! += x![i]!
    }
  },
}

export function toy(x: Tensor, pool: Tensor, scale: number, format: Format = 'f32'): Tensor {
  const width = x.shape[1] as number
  return record(kernel, {
    reads: { x },
    writes: { y: { shape: x.shape, format }, pool },
    constants: { WIDTH: width, SCALE: scale },
    workgroups: ({ T }) => fold(T * width, 64),
  }).y
}

/** A kernel that does not compile, one that asks for too many workgroups, and so on: by its source. */
export function broken(x: Tensor, shader: string, workgroups: [number, number, number] = [1, 1, 1]): Tensor {
  const k: Kernel = {
    name: 'broken',
    reads: ['x'],
    writes: ['y'],
    shader: [step, shader],
    cost: () => ({ flops: 0, bytes: 0 }),
    cpu() {},
  }
  return record(k, { reads: { x }, writes: { y: { shape: x.shape } }, constants: {}, workgroups }).y
}

/** x -> 2x -> 6x with both values marked. */
export function chain(graph: Graph, pool: Tensor, format: Format = 'f32'): void {
  const x = graph.input('x', ['T', 3])
  const twice = graph.name(toy(x, pool, 2, format), 'twice')
  graph.output('y', graph.name(toy(twice, pool, 3), 'sixfold'))
}

/** x through `steps` toys that each say they take long, so that every one is submitted by itself. */
export function heavy(x: Tensor, pool: Tensor, steps: number): Tensor {
  const slow: Kernel = { ...kernel, cost: () => ({ flops: 1e15, bytes: 0 }) }
  const width = x.shape[1] as number
  let y = x
  for (let i = 0; i < steps; i++) {
    y = record(slow, {
      reads: { x: y },
      writes: { y: { shape: x.shape }, pool },
      constants: { WIDTH: width, SCALE: 2 },
      workgroups: ({ T }) => fold(T * width, 64),
    }).y
  }
  return y
}
