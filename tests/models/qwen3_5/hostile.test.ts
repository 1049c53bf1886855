import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseConfig } from '../../../src/apps/decider/config.ts'
import { cpuDevice } from '../../../src/device/cpu.ts'
import { openDevice } from '../../../src/device/open.ts'
import { ShapeError, WeightsError } from '../../../src/errors.ts'
import { textConfig } from '../../../src/models/qwen3_5/config.ts'
import { textSession } from '../../../src/models/qwen3_5/session.ts'
import { fixtureJson } from '../../fixtures.ts'
import { loadFixture, tokens } from './fixture.ts'

type Json = Record<string, unknown>

/** A config with some of its keys, at any depth, replaced or removed. */
const damaged = (config: Json) =>
  fc
    .array(fc.tuple(fc.nat(), fc.nat(), fc.option(fc.jsonValue(), { nil: undefined })), { minLength: 1, maxLength: 3 })
    .map((changes) => {
      const copy = structuredClone(config)
      for (const [deep, pick, value] of changes) {
        const inner = Object.values(copy).filter((v): v is Json => typeof v === 'object' && v !== null)
        const at = deep % 3 === 0 && inner.length ? inner[deep % inner.length]! : copy
        const keys = Object.keys(at)
        const key = keys[pick % Math.max(1, keys.length)] ?? 'model_type'
        if (value === undefined) delete at[key]
        else at[key] = value
      }
      return copy
    })

/** Either a config that holds together, or a WeightsError; nothing else, ever. */
function survives(parse: () => unknown): 'read' | 'refused' {
  try {
    parse()
    return 'read'
  } catch (error) {
    expect(error).toBeInstanceOf(WeightsError)
    return 'refused'
  }
}

describe('10,000 damaged configs are read or refused, never half understood', () => {
  test('config.json', () => {
    const seen = { read: 0, refused: 0 }
    fc.assert(
      fc.property(fc.oneof(damaged(fixtureJson('qwen35-text-tiny/config.json')), fc.jsonValue()), (json) => {
        const outcome = survives(() => {
          const c = textConfig(json)
          const numbers = [
            c.hidden,
            c.intermediate,
            c.vocabulary,
            c.attention.headDim,
            c.delta.keyWidth,
            c.layers.length,
          ]
          for (const n of numbers) expect(Number.isSafeInteger(n) && n > 0).toBe(true)
        })
        seen[outcome]++
      }),
      { numRuns: 10_000 },
    )
    expect(seen.read + seen.refused).toBeGreaterThanOrEqual(10_000)
    expect(Math.min(seen.read, seen.refused)).toBeGreaterThan(100)
  })

  test('decider_config.json', () => {
    const valid = {
      version: 'x',
      temperature: 1.3,
      temperature_by_type: { choice: 1, noul: 2 },
      isolated_levels: true,
      max_options: 32,
      layout: 'plain',
    }
    const seen = { read: 0, refused: 0 }
    const texts = fc.oneof(
      damaged(valid).map((json) => JSON.stringify(json)),
      fc.json(),
      fc.string(),
    )
    fc.assert(
      fc.property(texts, (text) => {
        seen[survives(() => parseConfig(text))]++
      }),
      { numRuns: 10_000 },
    )
    expect(seen.read + seen.refused).toBeGreaterThanOrEqual(10_000)
    expect(Math.min(seen.read, seen.refused)).toBeGreaterThan(100)
  })
})

describe.each([
  ['cpu', async () => cpuDevice('test')],
  ['webgpu', () => openDevice('webgpu', { precision: 'f32' })],
] as const)('hostile values on %s', (_, open) => {
  test.each([Number.NaN, Number.POSITIVE_INFINITY])(
    'a weight of %d is found at readout; with it gone the next answer is right',
    async (value) => {
      await using device = await open()
      const { c, w, head } = await loadFixture('qwen35-text-tiny', device)
      const session = textSession(device, c, w, head)
      const row = { ids: tokens(20, c.vocabulary, 3), slots: [19] }
      const right = await session.logits([row])
      const norm = await device.read(w.norm)
      const broken = new Uint8Array(norm)
      new DataView(broken.buffer).setFloat32(40, value, true)
      device.write(w.norm, broken)
      await expect(session.logits([row])).rejects.toMatchObject({ name: 'WeightsError', code: 'format' })
      device.write(w.norm, norm)
      expect(await session.logits([row])).toEqual(right)
    },
  )

  test('rows that cannot be run are refused before anything runs', async () => {
    await using device = await open()
    const { c, w, head } = await loadFixture('qwen35-text-tiny', device)
    const session = textSession(device, c, w, head)
    for (const row of [
      { ids: [], slots: [] },
      { ids: [c.vocabulary], slots: [0] },
      { ids: [1.5], slots: [0] },
      { ids: [1], slots: [1] },
      { ids: tokens(c.maxPositions + 1, c.vocabulary), slots: [0] },
    ]) {
      await expect(session.logits([row])).rejects.toBeInstanceOf(ShapeError)
    }
    expect((await session.logits([{ ids: [1], slots: [0] }]))[0]).toHaveLength(1)
    expect(await session.logits([])).toEqual([])
  })
})
