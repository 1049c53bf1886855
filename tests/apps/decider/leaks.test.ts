import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { loadDecider } from '../../../src/apps/decider/load.ts'
import { yesNo } from '../../../src/apps/decider/question.ts'
import type { Device } from '../../../src/device/device.ts'
import { openDevice } from '../../../src/device/open.ts'
import { textConfig } from '../../../src/models/qwen3_5/config.ts'
import { canonicalName } from '../../../src/models/qwen3_5/names.ts'
import { textSession } from '../../../src/models/qwen3_5/session.ts'
import { textWeights } from '../../../src/models/qwen3_5/weights.ts'
import { Weights } from '../../../src/weights/load.ts'
import { openCheckpoint } from '../../../src/weights/safetensors.ts'
import { openSource } from '../../../src/weights/source.ts'
import { fixtureJson, fixtureModel } from '../../fixtures.ts'
import { expectNoUnhandledRejection, ownGpu, settle } from '../../device/faulty.ts'
import { filled } from '../../../src/device/fill.ts'

expectNoUnhandledRejection()

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

const MB = 2 ** 20
const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1]!

/** Runs `work` n times, sampling memory `samples` times: growth from the second to the last quarter, by medians. */
async function growth(n: number, samples: number, work: (i: number) => Promise<void>) {
  const heap: number[] = []
  const rss: number[] = []
  for (let i = 0; i < n; i++) {
    await work(i)
    if ((i + 1) % (n / samples) !== 0) continue
    await settle() // lets Dawn run its callbacks
    collect()
    await settle(50) // V8 gives pages back in the background: up to 32 MB are still resident when gc() returns
    collect()
    await settle(50)
    const { heapUsed, external, rss: resident } = process.memoryUsage()
    heap.push(heapUsed + external)
    rss.push(resident)
  }
  const quarter = samples / 4
  const grown = (of: readonly number[]) => median(of.slice(-quarter)) - median(of.slice(quarter, 2 * quarter))
  expect(heap).toHaveLength(samples)
  return { heap: grown(heap), rss: grown(rss) }
}

const ask = { refund: yesNo('A refund?') }

test('loading and disposing 20 times, and the device of the caller lives on', async () => {
  const gpu = await ownGpu()
  const device = await openDevice('webgpu', { gpu })
  let first: Device['memory'] | undefined
  let probability: number | undefined
  const { heap, rss } = await growth(20, 20, async () => {
    const decider = await loadDecider('public/models/decider-nano', { device })
    const { answers } = await decider.decide('Charged twice.', ask)
    await decider.dispose()
    first ??= device.memory
    probability ??= answers.refund.noul
    expect(answers.refund.noul).toBe(probability)
    expect(device.memory).toEqual(first) // slots, readback and pipelines stay with the device, and are used again
  })
  expect(first!.keptBytes).toBe(0)
  expect(heap, 'bytes of JS heap over 10 loads').toBeLessThan(1 * MB)
  expect(rss, 'resident bytes over 10 loads').toBeLessThan(32 * MB) // a load that stays would be 10 times 16 MB
  await device.dispose()
  expect(device.memory).toMatchObject({ keptBytes: 0, slotBytes: 0, buffers: 0 })
  const buffer = gpu.createBuffer({ size: 4, usage: GPUBufferUsage.COPY_DST })
  gpu.queue.writeBuffer(buffer, 0, new Uint32Array(1))
  await gpu.queue.onSubmittedWorkDone()
  gpu.destroy()
})

test('opening and disposing of 20 devices', async () => {
  const { heap, rss } = await growth(20, 20, async () => {
    const device = await openDevice('webgpu')
    device.keep('some', [2 ** 20], 'f32')
    await device.flush()
    await device.dispose()
    expect(device.memory.buffers).toBe(0)
  })
  expect(heap).toBeLessThan(1 * MB)
  expect(rss).toBeLessThan(32 * MB)
})

test('2,000 answers of the tiny model, with one signal for all', async () => {
  const name = 'qwen35-text-tiny'
  const device = await openDevice('webgpu', { precision: 'f32' })
  const c = textConfig(fixtureJson(`${name}/config.json`))
  const weights = new Weights(await openCheckpoint(openSource(fixtureModel(name))), device, {
    rename: canonicalName,
    format: (stored) => stored,
  })
  const text = textWeights(weights, c)
  await weights.stream()
  const head = device.keep('head', [8, c.hidden], text.head.format)
  device.write(head, filled(await text.head.read([...Array(8).keys()])))
  const session = textSession(device, c, text, head)
  const { signal } = new AbortController()
  const ids = [1, 2, 3, 4, 5, 6, 7, 8]
  const want = await session.logits([{ ids, slots: [7] }])
  const before = device.memory
  const { heap, rss } = await growth(2000, 40, async () => {
    const got = await session.logits([{ ids, slots: [7] }], { signal })
    expect(got[0]![0]![0]).toBe(want[0]![0]![0])
  })
  expect(device.memory).toEqual(before)
  expect(heap, 'bytes of JS heap over 1,000 answers').toBeLessThan(0.5 * MB)
  expect(rss, 'resident bytes over 1,000 answers').toBeLessThan(16 * MB)
  session.dispose()
  device.release(head)
  weights.release()
  expect(device.memory.keptBytes).toBe(0)
  await device.dispose()
  expect(device.memory).toMatchObject({ keptBytes: 0, slotBytes: 0, buffers: 0 })
})

test('100 answers of the nano model', async () => {
  const device = await openDevice('webgpu')
  const decider = await loadDecider('public/models/decider-nano', { device })
  await decider.decide('Charged twice.', ask)
  const before = device.memory
  const { signal } = new AbortController()
  const { heap, rss } = await growth(100, 20, async () => {
    await decider.decide('Charged twice.', ask, { signal })
  })
  expect(device.memory).toEqual(before)
  expect(heap).toBeLessThan(0.5 * MB)
  expect(rss).toBeLessThan(16 * MB)
  await decider.dispose()
  expect(device.memory.keptBytes).toBe(0)
  await device.dispose()
  expect(device.memory.buffers).toBe(0)
})
