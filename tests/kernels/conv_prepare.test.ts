import { describe, expect, test } from 'vitest'
import { cpuDevice } from '../../src/device/cpu.ts'
import { Graph } from '../../src/graph/graph.ts'
import { defaultLimits, type Target } from '../../src/graph/target.ts'
import { type ConvPrepare, convPrepare } from '../../src/kernels/conv_prepare.ts'
import { linear } from '../../src/kernels/linear.ts'
import { type Case, expectClose, gpu, noise, runOn, sameOnEveryDevice } from '../check.ts'
import { type Slots, tableOperands } from './delta_cases.ts'

interface Prepare extends Slots {
  readonly dims: ConvPrepare
  readonly lengths: readonly number[]
  readonly x?: Float32Array
}

const widths = ({ keyHeads: NK, valueHeads: NV, keyWidth: DK, valueWidth: DV }: ConvPrepare) => {
  const channels = 2 * NK * DK + NV * DV
  return { channels, wide: channels + NV * DV + 2 * NV }
}

function prepareCase({ dims, lengths, from, to, x }: Prepare): Case {
  const { counts, operands } = tableOperands(lengths, from, to)
  const { channels, wide } = widths(dims)
  const { kernel, valueHeads } = dims
  return {
    counts,
    operands: {
      ...operands,
      x: { shape: ['T', wide], data: x ?? noise(counts.T * wide, 1).map((v) => 3 * v) },
      w: { shape: [channels, 1, kernel], data: noise(channels * kernel, 2), kept: true },
      gateWeights: { shape: [2, valueHeads], data: noise(2 * valueHeads, 3).map((v) => 3 * v), kept: true },
      // Slot 0 too: nobody may read it.
      state: { shape: ['*', kernel - 1, channels], data: noise(9 * (kernel - 1) * channels, 4), kept: true },
    },
    op: ({ x, w, gateWeights, state, segments, segmentOf, chunks }) => {
      const tables = { segments: segments!, segmentOf: segmentOf!, chunks: chunks! }
      return { ...convPrepare(x!, w!, gateWeights!, state!, tables, dims), state: state! }
    },
    kernels: dims.form === 'fused' ? ['conv_prepare'] : ['causal_conv', 'delta_prepare'],
  }
}

const small = { keyHeads: 2, valueHeads: 4, keyWidth: 32, valueWidth: 32, kernel: 4, form: 'fused' } as const
const cpu = cpuDevice('test')

describe('fused', () => {
  test.each<Prepare>([
    { dims: small, lengths: [1, 2, 3, 4, 70], from: [0, 1, 1, 2, 0], to: [3, 4, 5, 0, 6] },
    { dims: small, lengths: [129], from: [0], to: [0] },
    {
      dims: { ...small, valueHeads: 2, keyWidth: 8, valueWidth: 48 },
      lengths: [3, 65],
      from: [2, 1],
      to: [3, 4],
    },
    {
      dims: { ...small, keyHeads: 16, valueHeads: 16, keyWidth: 128, valueWidth: 128 },
      lengths: [9],
      from: [1],
      to: [2],
    },
  ])('equals its twin: $lengths, $dims', (c) => sameOnEveryDevice(prepareCase(c)))

  test('is the convolution and the preparation', async () => {
    const rows = { lengths: [5, 66], from: [1, 0], to: [2, 3] }
    for (const device of [cpu, await gpu()]) {
      const fused = await runOn(device, prepareCase({ dims: small, ...rows }))
      const separate = await runOn(device, prepareCase({ dims: { ...small, form: 'separate' }, ...rows }))
      for (const name of ['qkv', 'gates', 'state']) expectClose(fused[name]!, separate[name]!, 1e-5, name)
    }
  })

  test('pieces of a row through states have the bits of the whole row, whatever the neighbours', async () => {
    const { wide, channels } = widths(small)
    const x = noise(9 * wide, 7)
    const device = await gpu()
    const whole = await runOn(device, prepareCase({ dims: small, lengths: [9], from: [0], to: [5], x }))
    const first = { dims: small, lengths: [4, 5], from: [0, 0], to: [0, 3] }
    const begun = await runOn(
      device,
      prepareCase({ ...first, x: Float32Array.of(...noise(4 * wide, 8), ...x.slice(0, 5 * wide)) }),
    )
    const second = prepareCase({ dims: small, lengths: [4], from: [3], to: [4], x: x.slice(5 * wide) })
    const state = { ...second.operands.state!, data: begun.state! }
    const ended = await runOn(device, { ...second, operands: { ...second.operands, state } })
    expect(Float32Array.of(...begun.qkv!.slice(4 * channels), ...ended.qkv!)).toEqual(whole.qkv)
    const slot = (pool: Float32Array, i: number) => pool.slice(i * 3 * channels, (i + 1) * 3 * channels)
    expect(slot(ended.state!, 4)).toEqual(slot(whole.state!, 5))
  })
})

test.each(['fused', 'separate'] as const)('halves in and out, read as products with a unit matrix: %s', (form) => {
  const c = prepareCase({ dims: { ...small, form, format: 'f16' }, lengths: [3, 66], from: [1, 0], to: [2, 3] })
  const unit = Float32Array.from({ length: 256 ** 2 }, (_, i) => Number(i % 257 === 0))
  return sameOnEveryDevice({
    ...c,
    operands: { ...c.operands, x: { ...c.operands.x!, format: 'f16' }, unit: { shape: [256, 256], data: unit } },
    op: (operands, graph) => {
      const { qkv, ...rest } = c.op(operands, graph)
      return { ...rest, qkv: linear(qkv!, operands.unit!) }
    },
    tolerance: 1e-3, // f16 rounds by 2^-11
    kernels: [...c.kernels!, 'linear'],
  })
})

test('the target decides', () => {
  const picked = (target: Partial<Target>, dims: Partial<ConvPrepare> = {}): string[] => {
    const graph = new Graph({ ...cpu.target, limits: defaultLimits, ...target })
    const { form: _, ...rest } = small
    const { operands, op } = prepareCase({ dims: { ...rest, ...dims }, lengths: [1], from: [0], to: [0] })
    op(Object.fromEntries(Object.entries(operands).map(([n, o]) => [n, graph.input(n, o.shape, o.format)])), graph)
    return graph.steps.map((s) => s.kernel.name)
  }
  expect(picked({ software: true })).toEqual(['causal_conv', 'delta_prepare'])
  expect(picked({ software: false })).toEqual(['conv_prepare'])
  expect(picked({ software: false, disabled: new Map([['conv_prepare', 'tested']]) })).toHaveLength(2)
  expect(picked({ software: false }, { keyHeads: 1, valueHeads: 1 })).toHaveLength(2) // rows are no multiple of 4
  expect(picked({ software: false }, { kernel: 2 })).toHaveLength(2)
  expect(() => picked({}, { kernel: 2, form: 'fused' })).toThrow('conv_prepare: dims have 2 taps')
})

test('wrong shapes are named', () => {
  const c = prepareCase({ dims: small, lengths: [1], from: [0], to: [0] })
  const call = (name: string, shape: readonly number[]) => () => {
    const graph = new Graph(cpu.target)
    const operands = { ...c.operands, [name]: { ...c.operands[name]!, shape } }
    c.op(Object.fromEntries(Object.entries(operands).map(([n, o]) => [n, graph.input(n, o.shape, o.format)])), graph)
  }
  expect(call('gateWeights', [8])).toThrow('gateWeights (gateWeights) has shape [8], expected [2,4]')
  expect(call('state', [4, 256])).toThrow('state (state) has shape [4,256], expected [*,3,256]')
})
