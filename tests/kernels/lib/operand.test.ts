import { describe, expect, test } from 'vitest'
import rowsPiece from '../../../shaders/lib/rows.wgsl' with { type: 'text' }
import step from '../../../shaders/lib/step.wgsl' with { type: 'text' }
import { record } from '../../../src/graph/graph.ts'
import type { Constants, Kernel } from '../../../src/graph/kernel.ts'
import type { Product } from '../../../src/kernels/lib/linear_tiles.ts'
import { operandMisfit, operandOf } from '../../../src/kernels/lib/operand.ts'
import { gpu, runOn } from '../../check.ts'

/**
 * For unit u of row r of the product: 1 + its place in x, or 0 outside, found three ways: by itself (u), one term of it
 * after another as of single values, and step by step as linear_matrix finds it, from the row before and the unit before.
 */
const kernel = (channels: number | undefined): Kernel => ({
  name: 'operand_places',
  reads: ['x'],
  writes: ['y'],
  shader: [
    step,
    rowsPiece,
    operandOf({ channels } as Product),
    `@group(0) @binding(0) var<storage, read> x: array<f32>;
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    fn place(at: u32, unit: u32) -> f32 { return select(0.0, f32(at) + 1.0, operand_has(at, unit)); }
    @compute @workgroup_size(1) fn main(@builtin(workgroup_id) id: vec3u) {
      let k = id.x * 8u;
      let to = (id.y * (IN / 8) + id.x) * 3u;
      if (id.y >= product_rows()) { return; }
      _ = x[0];
      let own = operand_at(id.y, k, 8u);
      y[to] = place(own, 8u);
      let first = place(operand_at(id.y, k, 1u), 1u);
      let last = place(operand_at(id.y, k + 7u, 1u), 1u);
      y[to + 1u] = select(select(-1.0, 0.0, last + first == 0.0), (first - 1.0) / 8.0 + 1.0, last - first == 7.0);
      let above = operand_at(id.y - 1u, k, 8u) + X_ROW;
      let before = operand_next(operand_at(id.y, k - BK, 8u), id.y, k, 8u);
      let below = select(own, above, id.y > 0u);
      y[to + 2u] = place(select(below, before, k >= BK && id.y % 2u == 0u), 8u);
    }`,
  ],
  cost: () => ({ flops: 0, bytes: 0 }),
  cpu: () => expect.unreachable('the expected places are in the test'),
})

async function places(rows: number, IN: number, constants: Constants, channels?: number): Promise<number[][]> {
  const { y } = await runOn(await gpu(), {
    operands: { x: { shape: ['T', 8] } },
    counts: { T: 2 },
    op: ({ x }) =>
      record<'y'>(kernel(channels), {
        reads: { x: x! },
        writes: { y: { shape: [rows, (IN / 8) * 3] } },
        constants: { ROWS: -1, IN, BK: 32, ...constants },
        workgroups: [IN / 8, rows, 1],
      }),
  })
  return [0, 1, 2].map((way) => Array.from({ length: (rows * IN) / 8 }, (_, i) => y![i * 3 + way]! + 0)) // drivers make -0, too
}

describe('units of eight values of windows', () => {
  test.each([
    [{ STRIDE: 1, DILATION: 1, PADDING: 3 }, 7, 6],
    [{ STRIDE: 1, DILATION: 9, PADDING: 27 }, 7, 6],
    [{ STRIDE: 4, DILATION: 1, PADDING: 2 }, 8, 8],
    [{ STRIDE: 1, DILATION: 1, PADDING: 1 }, 2, 3],
  ])('%j, %i taps', async (window, taps, RATE) => {
    const [CHANNELS, X_RATE, EXTRA] = [16, window.STRIDE * RATE, 1]
    const rows = 2 * RATE + 1
    const constants = { CHANNELS, ...window, X_RATE, RATE, EXTRA }
    const IN = taps * CHANNELS
    const want = Array.from({ length: (rows * IN) / 8 }, (_, i) => {
      const [r, k] = [Math.floor(i / (IN / 8)), (i % (IN / 8)) * 8]
      const row = r * window.STRIDE + Math.floor(k / CHANNELS) * window.DILATION - window.PADDING
      return row >= 0 && row < 2 * X_RATE ? row * (CHANNELS / 8) + (k % CHANNELS) / 8 + 1 : 0
    })
    expect(want.filter((place) => place === 0).length).toBeGreaterThan(0)
    for (const way of await places(rows, IN, constants, CHANNELS)) expect(way).toEqual(want)
  })
})

test('units of eight values of rows', async () => {
  const want = Array.from({ length: 2 * 6 }, (_, i) => i + 1)
  for (const way of await places(2, 48, {})) expect(way).toEqual(want)
})

test('tiles read windows of a multiple of eight channels', () => {
  expect(operandMisfit({ channels: 24 } as Product)).toBe(undefined)
  expect(operandMisfit({} as Product)).toBe(undefined)
  expect(operandMisfit({ channels: 4 } as Product)).toBe('windows of 4 channels, expected a multiple of 8')
})
