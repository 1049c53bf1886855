import { describe, expect, test } from 'vitest'
import type { Device } from '../../../src/device/device.ts'
import { plan, slotBytes } from '../../../src/graph/plan.ts'
import { defaultLimits, type Target } from '../../../src/graph/target.ts'
import { tensor } from '../../../src/graph/tensor.ts'
import { canonicalName } from '../../../src/models/qwen3_5/names.ts'
import { makePools } from '../../../src/models/qwen3_5/pools.ts'
import { type PublishedSize, publishedConfig } from '../../../src/models/qwen3_5/published.ts'
import { FREE_SLOT } from '../../../src/models/qwen3_5/schedule.ts'
import { textGraph } from '../../../src/models/qwen3_5/text.ts'
import { textWeights } from '../../../src/models/qwen3_5/weights.ts'
import { knownModels } from '../../../src/weights/known_models.ts'
import { Weights } from '../../../src/weights/load.ts'
import { publishedCheckpoint } from './published.ts'

const target: Target = {
  ...{ kind: 'webgpu', software: false, operand: 'f16', cache: 'f16', disabled: new Map() },
  features: new Set(['shader-f16', 'subgroups']),
  limits: { ...defaultLimits, bindingBytes: 2 ** 31 - 4, bufferBytes: 2 ** 32 },
}

/** Bytes on the device by what needs them, as the graph is planned for runs of up to `tokens`; nothing is allocated. */
function bytesOf(size: PublishedSize, tokens: number) {
  const c = publishedConfig(size)
  const keep: Device['keep'] = (label, shape, format) => tensor({ label, shape, format, place: 'kept' })
  const device = { target, keep, write() {}, release() {}, flush: async () => {} } as unknown as Device
  const checkpoint = publishedCheckpoint(c)
  const weights = new Weights(checkpoint, device, { rename: canonicalName, format: () => 'f16' })
  const text = textWeights(weights, c)
  const pools = makePools(device, c)
  const head = device.keep('labels', [255, c.hidden], 'bf16')
  const { slots } = plan(textGraph(target, c, text, pools.layers, head))
  return {
    stored: checkpoint.bytes,
    weights: weights.deviceBytes,
    pools: FREE_SLOT * pools.bytesPerSlot + tokens * pools.bytesPerRow,
    slots: slots.reduce((sum, slot) => sum + slotBytes(slot, tokens), 0),
  }
}

describe('on a device with f16', () => {
  test('the 2B text model takes at most 3.0 GB, with room for runs of 1024 tokens', () => {
    const { stored, weights, pools, slots } = bytesOf('2B', 1024)
    expect(Math.abs(stored - 3_763_650_176)).toBeLessThan(100_000) // some of its tensors are F32
    expect(Math.abs(weights - 2_747_000_000)).toBeLessThan(5_000_000)
    expect(weights + pools + slots).toBeLessThanOrEqual(3.0e9)
    expect(pools).toBeGreaterThan(0)
    expect(slots).toBeGreaterThan(0)
  })
  test.each(['0.8B', '2B'] as const)('the %s text model takes what is said of it before it is downloaded', (size) => {
    const { stored, weights } = bytesOf(size, 1)
    const known = knownModels.find(({ name }) => name.toUpperCase().endsWith(`DECIDER-${size}`))!
    expect(stored / known.bytes).toBeCloseTo(1, 2)
    expect(weights / known.deviceBytes).toBeCloseTo(1, 2)
  })
})
