import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { cpuDevice } from '../../../src/device/cpu.ts'
import type { Device } from '../../../src/device/device.ts'
import { openDevice } from '../../../src/device/open.ts'
import { FREE_SLOT, type Row } from '../../../src/models/qwen3_5/schedule.ts'
import type { Session } from '../../../src/models/qwen3_5/session.ts'
import { cosine, expectClose } from '../../check.ts'
import { fixtureSession, tokens } from './fixture.ts'

const name = 'qwen35-text-tiny'
const vocabulary = 512
const lastOf = (ids: readonly number[]): Row => ({ ids, slots: [ids.length - 1] })

describe.each([
  ['cpu', async () => cpuDevice('test')],
  ['webgpu, f32', () => openDevice('webgpu', { precision: 'f32' })],
  ['webgpu, f16', () => openDevice('webgpu')],
] as const)('rows on %s', (kind, open) => {
  let device: Device
  let session: Session
  beforeAll(async () => {
    device = await open()
    session = await fixtureSession(name, device)
  })
  afterAll(() => device.dispose())

  const forty = Array.from({ length: 40 }, (_, i) => lastOf(tokens(40, vocabulary, i + 1)))
  const alone = async (row: Row): Promise<Float32Array> => (await session.logits([row]))[0]![0]!

  test('the same bits alone, inside 1000 tokens and in any order', async () => {
    const some = forty.slice(0, 25) // 1000 tokens
    const together = await session.logits(some)
    const reversed = (await session.logits([...some].reverse())).reverse()
    for (const i of [0, 11, 24]) {
      const bits = await alone(some[i]!)
      expect(together[i]![0], `row ${i} among others`).toEqual(bits)
      expect(reversed[i]![0], `row ${i} in reverse order`).toEqual(bits)
    }
  })

  test('the same bits behind a snapshot as in one piece, for several forks at once', async () => {
    const text = tokens(192, vocabulary, 99)
    const questions = [1, 2, 3].map((n) => tokens(40, vocabulary, 100 + n))
    const whole = await session.logits(questions.map((q) => lastOf([...text, ...q])))
    const snapshot = { slot: FREE_SLOT, kvStart: 0, length: 192 }
    const kept = { slots: FREE_SLOT + 1, kvRows: 192 }
    await session.logits([{ ids: text, slots: [], keep: snapshot }], { kept })
    const forks = await session.logits(
      questions.map((q) => ({ ...lastOf(q), after: snapshot })),
      { kept },
    )
    questions.forEach((_, i) => expect(forks[i]![0], `fork ${i}`).toEqual(whole[i]![0]))
    const again = await session.logits([{ ...lastOf(questions[1]!), after: snapshot }], { kept })
    expect(again[0]![0]).toEqual(whole[1]![0])
  })

  test('prefill in pieces of any size equals prefill in one', async () => {
    const ids = tokens(150, vocabulary, 7)
    const whole = await alone(lastOf(ids))
    for (const size of [1, 37, 64, 128, 149]) {
      const pieces = await inPieces(ids, size)
      if (size % 64 === 0) expect(pieces, `pieces of ${size}`).toEqual(whole)
      else if (kind === 'webgpu, f16') expect(cosine(pieces, whole), `pieces of ${size}`).toBeGreaterThan(0.9999)
      else expectClose(pieces, whole, 1e-4, `pieces of ${size}`)
    }
  })

  /** Each piece continues the state of the one before; two slots take turns, the cache rows lie one after another. */
  async function inPieces(ids: readonly number[], size: number): Promise<Float32Array> {
    const kept = { slots: FREE_SLOT + 2, kvRows: ids.length }
    let after: Row['after']
    for (let from = 0; ; from += size) {
      const piece = ids.slice(from, from + size)
      const keep = { slot: after?.slot === FREE_SLOT ? FREE_SLOT + 1 : FREE_SLOT, kvStart: from }
      const [[logits] = []] = await session.logits([{ ...lastOf(piece), keep, after }], { kept })
      if (from + size >= ids.length) return logits!
      after = { slot: keep.slot, kvStart: 0, length: from + piece.length }
    }
  }
})
