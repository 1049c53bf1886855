import { expect, test } from 'vitest'
import { attentionJoin } from '../../src/kernels/attention_join.ts'
import { type Case, noise, runOn, sameOnEveryDevice } from '../check.ts'
import { cpuDevice } from '../../src/device/cpu.ts'

/** Parts with weights above zero, of scores far apart; the last of each head saw no key. */
function joinCase(T: number, shape: { heads: number; headDim: number; splits: number }): Case {
  const wide = shape.headDim + 4
  const data = noise(T * shape.heads * shape.splits * wide, 3).map((v, i) => {
    const column = (i % wide) - shape.headDim
    const empty = Math.floor(i / wide) % shape.splits === shape.splits - 1
    if (empty) return column === 1 ? -1e30 : 0
    return column === 0 ? 1 + v / 2 : column === 1 ? 20 * v : v
  })
  return {
    operands: { x: { shape: ['T', shape.heads * shape.splits * wide], data } },
    counts: { T },
    op: ({ x }) => ({ y: attentionJoin(x!, shape) }),
    tolerance: 1e-5,
    kernels: ['attention_join'],
  }
}

test.each([
  [1, { heads: 1, headDim: 8, splits: 2 }],
  [2, { heads: 16, headDim: 128, splits: 16 }],
  [3, { heads: 4, headDim: 64, splits: 5 }],
])('%d tokens of %j are the same on every device', (T, shape) => sameOnEveryDevice(joinCase(T, shape)))

test('parts count by their weights under the greatest score', async () => {
  const parts = [
    [1, 2, 3, 4, 2, 0, 9, 9], // sums, weight, score, padding
    [5, 5, 5, 5, 4, Math.log(0.5), 9, 9], // counts half
  ]
  const { y } = await runOn(cpuDevice('test'), {
    operands: { x: { shape: ['T', 16], data: Float32Array.from(parts.flat()) } },
    op: ({ x }) => ({ y: attentionJoin(x!, { heads: 1, headDim: 4, splits: 2 }) }),
  })
  ;[3.5 / 4, 4.5 / 4, 5.5 / 4, 6.5 / 4].forEach((v, i) => expect(y![i]).toBeCloseTo(v, 6))
})

test('x of another width is refused', async () => {
  await expect(
    runOn(cpuDevice('test'), {
      operands: { x: { shape: ['T', 20] } },
      op: ({ x }) => ({ y: attentionJoin(x!, { heads: 1, headDim: 4, splits: 2 }) }),
    }),
  ).rejects.toThrow('attention_join: x (x) has shape [T,20], expected [T,16]')
})
