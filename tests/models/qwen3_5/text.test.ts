import { afterAll, describe, test } from 'vitest'
import { cpuDevice } from '../../../src/device/cpu.ts'
import type { Device } from '../../../src/device/device.ts'
import { Graph } from '../../../src/graph/graph.ts'
import { segmentTables } from '../../../src/graph/segments.ts'
import { linear } from '../../../src/kernels/linear.ts'
import { textConfig } from '../../../src/models/qwen3_5/config.ts'
import { canonicalName } from '../../../src/models/qwen3_5/names.ts'
import { makePools } from '../../../src/models/qwen3_5/pools.ts'
import { ropeTable } from '../../../src/models/qwen3_5/rope.ts'
import { textInputs, textModel } from '../../../src/models/qwen3_5/text.ts'
import { textWeights } from '../../../src/models/qwen3_5/weights.ts'
import { Weights } from '../../../src/weights/load.ts'
import { openCheckpoint } from '../../../src/weights/safetensors.ts'
import { openSource } from '../../../src/weights/source.ts'
import { expectWithin, gpu } from '../../check.ts'
import { fixtureJson, fixtureModel, fixtureTensors } from '../../fixtures.ts'

/** The whole model over one row from nothing, with every position read and the whole LM head. */
async function load(name: string, device: Device) {
  const c = textConfig(fixtureJson(`${name}/config.json`))
  const weights = new Weights(await openCheckpoint(openSource(fixtureModel(name))), device, {
    rename: canonicalName,
    format: (stored) => (device.target.operand === 'f16' ? 'f16' : stored),
  })
  const w = textWeights(weights, c)
  await weights.stream({})
  const ids = Array.from({ length: c.vocabulary }, (_, i) => i)
  const head = device.keep('head', [c.vocabulary, c.hidden], w.head.format)
  device.write(head, await w.head.read(ids))
  const pools = makePools(device, c)
  pools.reserve(2, 600)
  const graph = new Graph(device.target)
  const hidden = textModel(graph, c, w, pools.layers, textInputs(graph, c, w.embedding.format))
  if (hidden.format === 'f32') graph.output('hidden', hidden)
  graph.output('logits', linear(hidden, head))
  const program = await device.compile(graph)
  const inputs = async (row: readonly number[]) => {
    const T = row.length
    const segment = { length: T, from: 0, to: 1, prefixStart: 0, prefixLength: 0, kvStart: 0, kvBefore: 0 }
    const { counts, ...tables } = segmentTables([segment], T)
    const positions = row.map((_, i) => i)
    return {
      counts,
      inputs: {
        table: await w.embedding.read(row),
        ids: Uint32Array.from(positions),
        rope: ropeTable([positions, positions, positions], c.attention),
        read: Uint32Array.from(positions),
        ...tables,
      },
    }
  }
  return { c, graph, program, pools, inputs }
}

interface Lengths {
  readonly lengths: Record<string, { ids: number[]; hidden_positions: 'all' | number[]; logit_positions: number[] }>
}

const devices = { cpu: cpuDevice('test'), webgpu: gpu }
afterAll(async () => (await gpu()).dispose())

describe.each([
  ['qwen35-text-tiny', 'cpu', [1, 64, 69, 129]],
  ['qwen35-text-tiny', 'webgpu', [1, 64, 69, 129]],
  ['qwen35-text-heads', 'cpu', [64]],
  ['qwen35-text-heads', 'webgpu', [64]],
] as const)('%s on %s', (name, kind, lengths) => {
  const device = async () => (kind === 'cpu' ? devices.cpu : devices.webgpu())
  const loaded = (async () => load(name, await device()))()

  test.each(lengths.map((n) => [n]))('%i tokens', async (length) => {
    const { program, inputs, c } = await loaded
    const want = fixtureTensors(`${name}/expected.safetensors`)
    const { ids, hidden_positions, logit_positions } = fixtureJson<Lengths>(`${name}/inputs.json`).lengths[length]!
    const run = await inputs(ids)
    const { hidden, logits } = await program.run(run.inputs, run.counts)
    const at = (data: Float32Array, width: number, positions: readonly number[]) =>
      Float32Array.from(positions.flatMap((p) => [...data.subarray(p * width, (p + 1) * width)]))
    const all = ids.map((_, i) => i)
    const positions = hidden_positions === 'all' ? all : hidden_positions
    expectWithin(at(hidden!, c.hidden, positions), want.get(`len${length}.hidden`).data, 5e-4, 1e-3, 'hidden')
    expectWithin(at(logits!, c.vocabulary, logit_positions), want.get(`len${length}.logits`).data, 1e-3, 1e-3, 'logits')
  })
})

describe.each(['cpu', 'webgpu'] as const)('layer by layer on %s', (kind) => {
  test('qwen35-text-tiny at 69 tokens', async () => {
    const { program, inputs, c } = await load(
      'qwen35-text-tiny',
      kind === 'cpu' ? devices.cpu : await devices.webgpu(),
    )
    const want = fixtureTensors('qwen35-text-tiny/expected.safetensors')
    const run = await inputs(fixtureJson<Lengths>('qwen35-text-tiny/inputs.json').lengths[69]!.ids)
    const traced = await program.trace(run.inputs, run.counts)
    const value = (label: string) => traced.find((t) => t.name === label)!.data as Float32Array
    const minus = (a: Float32Array, b: Float32Array) => a.map((v, i) => v - b[i]!)
    let x = value('embed')
    expectWithin(x, want.get('len69.embed').data, 5e-4, 1e-3, 'embed')
    c.layers.forEach((_, i) => {
      const [mixer, out] = [value(`layers.${i}.mixer`), value(`layers.${i}.out`)]
      expectWithin(minus(mixer, x), want.get(`len69.layer${i}.mixer_out`).data, 5e-4, 1e-3, `mixer ${i}`)
      expectWithin(minus(out, mixer), want.get(`len69.layer${i}.mlp_out`).data, 5e-4, 1e-3, `mlp ${i}`)
      expectWithin(out, want.get(`len69.layer${i}.out`).data, 5e-4, 1e-3, `out ${i}`)
      x = out
    })
  })
})
