import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { cpuDevice } from '../../../src/device/cpu.ts'
import type { Device } from '../../../src/device/device.ts'
import { decode } from '../../../src/device/formats.ts'
import { openDevice } from '../../../src/device/open.ts'
import type { SeenImage } from '../../../src/models/qwen3_5/album.ts'
import { positionsFrom, rowPositions } from '../../../src/models/qwen3_5/positions.ts'
import { FREE_SLOT } from '../../../src/models/qwen3_5/schedule.ts'
import { expectWithin, relativeNorm } from '../../check.ts'
import { given, golden, images, loadVision, vision } from './vision_fixture.ts'

const RELATIVE = 2e-4

describe.each(['cpu', 'webgpu'] as const)('the vision tower on %s', (kind) => {
  let device: Device
  let model: Awaited<ReturnType<typeof loadVision>>
  beforeAll(async () => {
    device = kind === 'cpu' ? cpuDevice('test') : await openDevice('webgpu', { precision: 'f32' })
    model = await loadVision(device)
  })
  afterAll(() => device.dispose())

  const features = async (image: SeenImage): Promise<Float32Array> => {
    const all = decode(await device.read(model.tower.features), 'f32') as Float32Array
    const row = model.tower.rowOf(image.first)!
    return all.subarray(row * vision.out, (row + image.tokens) * vision.out)
  }

  /** A prompt of the fixture whose image tokens are those of the images. */
  const rowOf = (prompt: string, more: readonly number[] = []) => {
    const { ids, images: names } = given.prompts[prompt]!
    const seen = names.map((name) => model.album.see(images[name]!))
    const tokens = seen.flatMap(({ first, tokens }) => Array.from({ length: tokens }, (_, i) => first + i))
    const own = [...ids, ...more].map((id) => (id === vision.imageToken ? tokens.shift()! : id))
    expect(tokens).toEqual([])
    return { seen, ids: own, positions: rowPositions(own, seen, vision.merge) }
  }

  test.each(Object.keys(images))('features of %s', async (name) => {
    const image = model.album.see(images[name]!)
    await model.tower.look([image])
    const want = golden(`${name}.image_features`)
    expectWithin(await features(image), want, 2e-4, 1e-3, name)
    expect(relativeNorm(await features(image), want)).toBeLessThan(RELATIVE)
  })

  test('images beside each other have the bits that they have alone', async () => {
    const seen = ['noise.small', 'gradient.default', 'solid.small'].map((name) => model.album.see(images[name]!))
    const alone: Float32Array[] = []
    for (const image of seen) {
      await model.tower.look([image])
      alone.push((await features(image)).slice())
    }
    await model.tower.look(seen)
    for (const [i, image] of seen.entries()) expect(await features(image)).toEqual(alone[i])
  })

  test.each(Object.keys(given.prompts))('logits of %s', async (prompt) => {
    const { seen, ids, positions } = rowOf(prompt)
    await model.tower.look(seen)
    const [[logits] = []] = await model.session.logits([{ ids, positions, slots: [ids.length - 1] }])
    const want = golden(`${prompt}.logits_last`)
    expectWithin(logits!, want, 1e-3, 1e-3, prompt)
    expect(relativeNorm(logits!, want)).toBeLessThan(RELATIVE)
  })

  test('tokens after an image, behind a snapshot that ends within it', async () => {
    const { cont_ids } = given.prompts['noise.small']!
    const { seen, ids, positions } = rowOf('solid.default')
    await model.tower.look(seen)
    const slots = [ids.length - 1]
    const whole = await model.session.logits([{ ids, positions, slots }])
    const kept = { slots: FREE_SLOT + 1, kvRows: 64 }
    const keep = { slot: FREE_SLOT, kvStart: 0 }
    expect(ids.length).toBeGreaterThan(64)
    await model.session.logits(
      [{ ids: ids.slice(0, 64), positions: positionsFrom(positions, 0, 64), slots: [], keep }],
      { kept },
    )
    const behind = {
      ids: ids.slice(64),
      positions: positionsFrom(positions, 64),
      slots: slots.map((s) => s - 64),
      after: { ...keep, length: 64 },
    }
    expect(await model.session.logits([behind], { kept })).toEqual(whole)

    const more = rowOf('noise.small', cont_ids!)
    await model.tower.look(more.seen)
    const at = cont_ids!.map((_, i) => more.ids.length - cont_ids!.length + i)
    const [rows] = await model.session.logits([{ ids: more.ids, positions: more.positions, slots: at }])
    expectWithin(Float32Array.from(rows!.flatMap((row) => [...row])), golden('noise.small.cont_logits'), 1e-3, 1e-3)
  })

  test('a run of image tokens alone is as beside text', async () => {
    const [image] = rowOf('solid.small').seen
    await model.tower.look([image!])
    const row = { ids: Array.from({ length: image!.tokens }, (_, i) => image!.first + i), slots: [0] }
    const [alone] = await model.session.logits([row])
    const [beside] = await model.session.logits([row, { ids: [1, 2, 3], slots: [] }])
    expect(alone).toEqual(beside)
  })

  test('an image that is there is not made again, and a row about one that is gone is refused', async () => {
    const image = model.album.see(images['solid.small']!)
    const runs: number[] = []
    const options = { onProfile: () => void runs.push(1) }
    await model.tower.look([model.album.see(images['noise.small']!)])
    if (kind === 'cpu') {
      await model.tower.look([image], options)
      await model.tower.look([image, image], options)
      expect(runs).toHaveLength(1)
    } else await model.tower.look([image])
    const gone = model.album.see(images['noise.small']!)
    await expect(model.session.logits([{ ids: [gone.first], slots: [0] }])).rejects.toThrow(`token id ${gone.first}`)
  })

  test('an image of more patches than a run takes is refused, with the size that fits', async () => {
    const { maxTokens } = await model.tower.program()
    const [rows, columns] = [maxTokens / 32 + 2, 32]
    const pixels = { width: 16 * columns, height: 16 * rows, data: new Uint8Array(3) }
    const large = { rows, columns, pixels, first: 10 ** 6, tokens: (rows * columns) / 4 }
    await expect(model.tower.look([large])).rejects.toThrow(`set maxPixels to ${maxTokens * 256} or less`)
  })
})

describe('the tower step by step', () => {
  test.each(['noise.small', 'gradient.small', 'solid.small'])('%s', async (name) => {
    await using device = cpuDevice('test')
    const { tower, album } = await loadVision(device)
    const traced = await tower.trace([album.see(images[name]!)])
    const value = (label: string): Float32Array => {
      const found = traced.filter((t) => t.name === label).map((t) => t.data as Float32Array)
      expect(found, label).toHaveLength(1)
      return found[0]!
    }
    expectWithin(value('visual.embed'), golden(`${name}.vision.block0.in`), 2e-4, 1e-3, 'embed')
    expectWithin(value('visual.merger'), golden(`${name}.image_features`), 2e-4, 1e-3, 'merger')
    // the stream after block i is the x that the next norm leaves
    const streams = traced.filter((t) => t.kernel === 'add_layer_norm' && t.shape[1] === vision.hidden)
    const after = (i: number): Float32Array => streams[4 * i + 2]!.data as Float32Array
    for (let i = 0; i < vision.depth; i++)
      expectWithin(after(i), golden(`${name}.vision.block${i}.out`), 2e-4, 1e-3, `block ${i}`)
  })
})
