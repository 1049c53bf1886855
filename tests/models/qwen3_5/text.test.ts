import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { cpuDevice } from '../../../src/device/cpu.ts'
import type { Device, Program } from '../../../src/device/device.ts'
import { decode } from '../../../src/device/formats.ts'
import { openDevice } from '../../../src/device/open.ts'
import { Graph } from '../../../src/graph/graph.ts'
import { segmentTables } from '../../../src/graph/segments.ts'
import { linear } from '../../../src/kernels/linear.ts'
import { makePools, type Pools } from '../../../src/models/qwen3_5/pools.ts'
import { ropeTable } from '../../../src/models/qwen3_5/rope.ts'
import { FREE_SLOT } from '../../../src/models/qwen3_5/schedule.ts'
import { textSession } from '../../../src/models/qwen3_5/session.ts'
import { textInputs, textModel } from '../../../src/models/qwen3_5/text.ts'
import { cosine, expectWithin, relativeNorm } from '../../check.ts'
import { fixtureJson, fixtureTensors } from '../../fixtures.ts'
import { type Fixture, loadFixture } from './fixture.ts'

interface Inputs {
  readonly lengths: Record<string, { ids: number[]; hidden_positions: 'all' | number[]; logit_positions: number[] }>
  readonly cont: { readonly ids: number[]; readonly prefill: number; readonly steps: number }
  readonly batch: { readonly ids: number[][]; readonly lengths: number[] }
  readonly recurrent_state_heads?: number[]
}

/** The whole model over one row from nothing, read through the whole LM head; state goes to slot 1. */
async function compile(device: Device, { c, w, head }: Fixture) {
  const pools = makePools(device, c)
  pools.reserve(2, 600)
  const graph = new Graph(device.target)
  const hidden = textModel(graph, c, w, pools.layers, textInputs(graph, c, w.embedding.format))
  if (hidden.format === 'f32') graph.output('hidden', hidden)
  graph.output('logits', linear(hidden, head))
  const program = await device.compile(graph)
  const inputs = async (ids: readonly number[], read: readonly number[] = ids.map((_, i) => i)) => {
    const length = ids.length
    const segment = { length, from: 0, to: 1, prefixStart: 0, prefixLength: 0, kvStart: 0, kvBefore: 0 }
    const { counts, ...tables } = segmentTables([segment], read.length)
    const positions = ids.map((_, i) => i)
    const rope = ropeTable([positions, positions, positions], c.attention)
    const each = Uint32Array.from(positions)
    const table = await w.embedding.read(ids)
    return [{ table, ids: each, rope, read: Uint32Array.from(read), ...tables }, counts] as const
  }
  return { pools, program, inputs }
}

const rowsOf = (data: Float32Array, width: number, positions: readonly number[]): Float32Array =>
  Float32Array.from(positions.flatMap((p) => [...data.subarray(p * width, (p + 1) * width)]))

describe.each([
  ['qwen35-text-tiny', 'cpu', 69],
  ['qwen35-text-tiny', 'webgpu', 69],
  ['qwen35-text-heads', 'cpu', 100],
  ['qwen35-text-heads', 'webgpu', 100],
] as const)('%s on %s', (name, kind, layered) => {
  const want = fixtureTensors(`${name}/expected.safetensors`)
  const given = fixtureJson<Inputs>(`${name}/inputs.json`)
  const golden = (key: string): Float32Array => want.get(key).data
  let device: Device
  let fixture: Fixture
  let program: Program
  let pools: Pools
  let inputs: Awaited<ReturnType<typeof compile>>['inputs']
  beforeAll(async () => {
    device = kind === 'cpu' ? cpuDevice('test') : await openDevice('webgpu', { precision: 'f32' })
    fixture = await loadFixture(name, device)
    ;({ program, pools, inputs } = await compile(device, fixture))
  })
  afterAll(() => device.dispose())

  test.each(Object.keys(given.lengths).map((n) => [Number(n)]))('%i tokens', async (length) => {
    const { hidden: H, vocabulary } = fixture.c
    const { ids, hidden_positions, logit_positions } = given.lengths[length]!
    const { hidden, logits } = await program.run(...(await inputs(ids)))
    const positions = hidden_positions === 'all' ? ids.map((_, i) => i) : hidden_positions
    expectWithin(rowsOf(hidden!, H, positions), golden(`len${length}.hidden`), 5e-4, 1e-3, 'hidden')
    expectWithin(rowsOf(logits!, vocabulary, logit_positions), golden(`len${length}.logits`), 1e-3, 1e-3, 'logits')
  })

  test('layer by layer', async () => {
    const traced = await program.trace(...(await inputs(given.lengths[layered]!.ids)))
    const value = (label: string) => traced.find((t) => t.name === label)!.data as Float32Array
    /** Blocks of a split sum, added. */
    const sum = (parts: Float32Array): Float32Array => {
      const [H, blocks] = [fixture.c.hidden, parts.length / layered / fixture.c.hidden]
      const at = (t: number, i: number, block: number) => parts[(t * blocks + block) * H + i]!
      return Float32Array.from({ length: layered * H }, (_, n) => {
        const terms = Array.from({ length: blocks }, (_, block) => at(Math.floor(n / H), n % H, block))
        return terms.reduce((a, b) => a + b)
      })
    }
    const plus = (a: Float32Array, b: Float32Array) => a.map((v, i) => v + b[i]!)
    let x = value('embed')
    expectWithin(x, golden(`len${layered}.embed`), 5e-4, 1e-3, 'embed')
    fixture.c.layers.forEach((_, i) => {
      const [mixer, mlp] = [sum(value(`layers.${i}.mixer`)), sum(value(`layers.${i}.mlp`))]
      x = plus(plus(x, mixer), mlp)
      const at = `len${layered}.layer${i}`
      expectWithin(mixer, golden(`${at}.mixer_out`), 5e-4, 1e-3, `mixer ${i}`)
      expectWithin(mlp, golden(`${at}.mlp_out`), 5e-4, 1e-3, `mlp ${i}`)
      expectWithin(x, golden(`${at}.out`), 5e-4, 1e-3, `out ${i}`)
    })
  })

  test('behind the last mixer are the rows that are read alone, with the same bits', async () => {
    const { ids } = given.lengths[layered]!
    const read = [layered - 1, 5]
    const all = (await program.run(...(await inputs(ids)))).logits!
    const { logits } = await program.run(...(await inputs(ids, read)))
    expect(logits).toEqual(rowsOf(all, fixture.c.vocabulary, read))
    const traced = await program.trace(...(await inputs(ids, read)))
    const rows = (label: string) => traced.find((t) => t.name === label)!.shape[0]
    const last = `layers.${fixture.c.layers.length - 1}`
    expect([rows('layers.0.mlp'), rows(`${last}.mixer`), rows(`${last}.mlp`)]).toEqual([layered, layered, 2])
  })

  test('states and caches', async () => {
    await program.run(...(await inputs(given.lengths[layered]!.ids)))
    const { delta, attention } = fixture.c
    const channels = 2 * delta.keyHeads * delta.keyWidth + delta.valueHeads * delta.valueWidth
    for (const [i, layer] of pools.layers.entries()) {
      const at = `len${layered}.layer${i}`
      if (layer.kind === 'linear') {
        const conv = decode(await device.read(layer.conv), 'f32').subarray(3 * channels) // slot 1: [3, channels]
        const columns = golden(`${at}.conv_state`) // [channels, 4], the newest last
        const last = Float32Array.from(
          columns.filter((_, k) => k % 4 > 0),
          (_, k) => conv[(k % 3) * channels + Math.floor(k / 3)]!,
        )
        expectWithin(
          last,
          columns.filter((_, k) => k % 4 > 0),
          1e-4,
          1e-3,
          `${at} conv`,
        )
        const size = delta.keyWidth * delta.valueWidth
        const state = decode(await device.read(layer.state), 'f32').subarray(delta.valueHeads * size) as Float32Array
        const heads = given.recurrent_state_heads ?? Array.from({ length: delta.valueHeads }, (_, h) => h)
        expectWithin(rowsOf(state, size, heads), golden(`${at}.recurrent_state`), 5e-4, 1e-3, `${at} state`)
      } else {
        const { kvHeads, headDim: D } = attention
        const rows = decode(await device.read(layer.kv), device.target.cache)
        for (const [part, key] of (['k_cache', 'v_cache'] as const).entries()) {
          const cache = golden(`${at}.${key}`) // [kvHeads, tokens, D]; a row of ours: k of all heads, v of all heads
          const ours = cache.map((_, n) => {
            const [head, token] = [Math.floor(n / (layered * D)), Math.floor(n / D) % layered]
            return rows[(2 * token + part) * kvHeads * D + head * D + (n % D)]!
          })
          expectWithin(ours, cache, 5e-4, 1e-3, `${at} ${key}`)
        }
      }
    }
  })

  test('decoding token by token equals one pass', async () => {
    const { ids, prefill, steps } = given.cont
    const session = textSession(device, fixture.c, fixture.w, fixture.head)
    const kept = { slots: FREE_SLOT + 2, kvRows: ids.length }
    let length = prefill
    let slot = FREE_SLOT
    const first = { ids: ids.slice(0, prefill), slots: [prefill - 1], keep: { slot, kvStart: 0 } }
    const [[logits] = []] = await session.logits([first], { kept })
    expectWithin(logits!, golden('cont.prefill_logits'), 1e-3, 1e-3, 'prefill')
    const decoded: number[] = []
    for (let k = 0; k < steps; k++, length++) {
      const keep = { slot: slot === FREE_SLOT ? FREE_SLOT + 1 : FREE_SLOT, kvStart: length }
      const row = { ids: [ids[length]!], slots: [0], after: { slot, kvStart: 0, length }, keep }
      decoded.push(...(await session.logits([row], { kept }))[0]![0]!)
      slot = keep.slot
    }
    expectWithin(Float32Array.from(decoded), golden('cont.step_logits'), 1e-3, 1e-3, 'steps')
    session.dispose()
  })

  test('rows of several lengths in one run', async () => {
    const { ids, lengths } = given.batch
    const session = textSession(device, fixture.c, fixture.w, fixture.head)
    const rows = ids.map((all, i) => ({ ids: all.slice(0, lengths[i]), slots: [lengths[i]! - 1] }))
    const logits = await session.logits(rows)
    logits.forEach(([last], i) => expectWithin(last!, golden(`batch.row${i}.logits`), 1e-3, 1e-3, `row ${i}`))
    session.dispose()
  })
})

/** Random weights amplify the rounding of single positions, so f16 is judged by its median and by the page's cosine. */
describe.each(['qwen35-text-tiny', 'qwen35-text-heads'])('%s with f16 operands', (name) => {
  test('logits within 2e-3 of the reference in the median, cosine above 0.9999 everywhere', async () => {
    await using device = await openDevice('webgpu')
    expect(device.target.operand, 'the driver has shader-f16').toBe('f16')
    const fixture = await loadFixture(name, device)
    const { program, inputs } = await compile(device, fixture)
    const { vocabulary } = fixture.c
    const want = fixtureTensors(`${name}/expected.safetensors`)
    const errors: number[] = []
    const { lengths } = fixtureJson<Inputs>(`${name}/inputs.json`)
    for (const [length, { ids, logit_positions }] of Object.entries(lengths)) {
      const expected = want.get(`len${length}.logits`).data
      const { logits } = await program.run(...(await inputs(ids)))
      const got = rowsOf(logits!, vocabulary, logit_positions)
      logit_positions.forEach((_, i) => {
        const [ours, reference] = [rowsOf(got, vocabulary, [i]), rowsOf(expected, vocabulary, [i])]
        errors.push(relativeNorm(ours, reference))
        expect(cosine(ours, reference), `${length} tokens`).toBeGreaterThan(0.9999)
      })
    }
    expect(errors.sort((a, b) => a - b)[errors.length >> 1]).toBeLessThan(2e-3)
  })
})
