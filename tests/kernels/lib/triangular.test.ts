import { expect, test } from 'vitest'
import triangular from '../../../shaders/lib/triangular.wgsl' with { type: 'text' }
import { cpuDevice } from '../../../src/device/cpu.ts'
import { record } from '../../../src/graph/graph.ts'
import type { Kernel } from '../../../src/graph/kernel.ts'
import { solveUnitLower } from '../../../src/kernels/lib/triangular.ts'
import { gpu, relativeNorm, runOn } from '../../check.ts'
import { fixtureTensors } from '../../fixtures.ts'

/** x = (I + a)^-1: the solution for the columns of I. One workgroup per matrix, an invocation per column. */
const inverse: Kernel = {
  name: 'inverse',
  reads: ['a'],
  writes: ['x'],
  shader: [
    triangular,
    /* wgsl */ `
    @group(0) @binding(0) var<storage, read> a: array<f32>;
    @group(0) @binding(1) var<storage, read_write> x: array<f32>;
    @compute @workgroup_size(64)
    fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) column: u32) {
      let at = group.x * 4096u + column;
      for (var quad = column / 16u * 4u; quad < 16u; quad++) {
        let i = at + quad * 256u;
        lower[lower_at(quad, column)] = vec4f(a[i], a[i + 64u], a[i + 128u], a[i + 192u]);
      }
      workgroupBarrier();
      var y: array<vec4f, 16>;
      y[column / 4u][column % 4u] = 1.0;
      solve(&y, 64u);
      for (var i = 0u; i < 64u; i++) { x[at + i * 64u] = y[i / 4u][i % 4u]; }
    }`,
  ],
  cost: () => ({ flops: 0, bytes: 0 }),
  cpu({ a, x }) {
    for (let at = 0; at < a!.length; at += 4096) {
      const identity = Float64Array.from({ length: 4096 }, (_, i) => (i % 65 === 0 ? 1 : 0))
      solveUnitLower(Float64Array.from(a!.subarray(at, at + 4096)), identity, 64)
      x!.set(identity, at)
    }
  },
}

test.each(['random', 'ill', 'equal'])('(I + A)^-1 of %s matrices', async (name) => {
  const file = fixtureTensors('ops/ops.safetensors')
  const { shape, data } = file.get(`triinv.${name}.A`)
  const want = file.get(`triinv.${name}.inv`).data
  for (const device of [cpuDevice('test'), await gpu()]) {
    const { x } = await runOn(device, {
      operands: { a: { shape, data } },
      op: ({ a }) =>
        record(inverse, { reads: { a: a! }, writes: { x: { shape } }, constants: {}, workgroups: [shape[0]!, 1, 1] }),
    })
    expect(relativeNorm(x!, want), device.kind).toBeLessThan(1e-5)
  }
})
