import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { cpuDevice } from '../../../src/device/cpu.ts'
import type { Device } from '../../../src/device/device.ts'
import { openDevice } from '../../../src/device/open.ts'
import { defaultLimits } from '../../../src/graph/target.ts'
import { type Session, textSession } from '../../../src/models/qwen3_5/session.ts'
import { expectClose } from '../../check.ts'
import { fixtureSession, loadFixture, tokens } from './fixture.ts'

const name = 'qwen35-text-tiny'
const row = (n: number) => ({ ids: tokens(n, 512, n), slots: [n - 1] })

describe('every length', () => {
  let device: Device
  let session: Session
  let want: Float32Array[][]
  const lengths = Array.from({ length: 130 }, (_, i) => i + 1)
  beforeAll(async () => {
    device = await openDevice('webgpu', { precision: 'f32' })
    session = await fixtureSession(name, device)
    want = await (await fixtureSession(name, cpuDevice('test'))).logits(lengths.map(row))
  })
  afterAll(() => device.dispose())

  test('from 1 to 130 tokens: the same on WebGPU as on the CPU, and no pipeline is added', async () => {
    await session.logits([row(1)])
    const { pipelines } = device.memory
    expect(pipelines).toBeLessThanOrEqual(40)
    for (const n of lengths)
      expectClose((await session.logits([row(n)]))[0]![0]!, want[n - 1]![0]!, 2e-4, `${n} tokens`)
    expect(device.memory.pipelines).toBe(pipelines)
  })

  test('with no more than the limits that WebGPU grants everywhere: the same answers', async () => {
    await using small = await openDevice('webgpu', { precision: 'f32', limits: 'default' })
    expect(small.target.limits).toEqual(defaultLimits)
    const limited = await fixtureSession(name, small)
    for (const n of [1, 40, 64, 130]) expect(await limited.logits([row(n)])).toEqual(await session.logits([row(n)]))
  })
})

describe('long rows', () => {
  /** A session whose device says that a binding holds so many bytes; all that follows from it is real. */
  async function bounded(device: Device, bindingBytes: number): Promise<Session> {
    const { c, w, head } = await loadFixture(name, device)
    const target = { ...device.target, limits: { ...device.target.limits, bindingBytes } }
    return textSession(Object.create(device, { target: { value: target } }), { ...c, maxPositions: 65536 }, w, head)
  }
  const ids = tokens(32768, 512, 5)

  test('the same bits however many tokens fit one run', async () => {
    await using device = await openDevice('webgpu', { precision: 'f32' })
    const rows = [{ ids: ids.slice(0, 1500), slots: [1000, 1499] }]
    const want = await (await fixtureSession(name, cpuDevice('test'))).logits(rows)
    const results = []
    for (const [bindingBytes, most] of [
      [2 ** 27, 8192],
      [2 ** 22, 1024],
      [2 ** 19, 128],
    ] as const) {
      const session = await bounded(device, bindingBytes)
      expect((await session.program()).maxTokens).toBe(most)
      results.push(await session.logits(rows))
    }
    expect(results[1]).toEqual(results[0])
    expect(results[2]).toEqual(results[0])
    results[0]![0]!.forEach((logits, i) => expectClose(logits, want[0]![i]!, 2e-4, `slot ${i}`))
  })

  test('32,768 tokens in bounded memory', async () => {
    await using device = await openDevice('webgpu', { precision: 'f32' })
    const session = await bounded(device, 2 ** 22)
    const { maxTokens } = await session.program()
    const slots = [1000, 32767]
    const [logits] = await session.logits([{ ids, slots }])
    expect(logits!.map((l) => l.length)).toEqual([512, 512])
    expect(device.memory.slotBytes).toBeLessThan(maxTokens * 20_000)
    const first = await session.logits([{ ids: ids.slice(0, 1001), slots: [1000] }])
    expect(logits![0]).toEqual(first[0]![0])
  }, 600_000)
})
