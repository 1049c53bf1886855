import type { Device } from '../../../src/device/device.ts'
import type { Tensor } from '../../../src/graph/tensor.ts'
import { type TextConfig, textConfig } from '../../../src/models/qwen3_5/config.ts'
import { canonicalName } from '../../../src/models/qwen3_5/names.ts'
import { type Session, textSession } from '../../../src/models/qwen3_5/session.ts'
import { type TextWeights, textWeights } from '../../../src/models/qwen3_5/weights.ts'
import { Weights } from '../../../src/weights/load.ts'
import { openCheckpoint } from '../../../src/weights/safetensors.ts'
import { openSource } from '../../../src/weights/source.ts'
import { fixtureJson, fixtureModel } from '../../fixtures.ts'
import { filled } from '../../../src/device/fill.ts'

export interface Fixture {
  readonly c: TextConfig
  readonly w: TextWeights
  /** All rows of the LM head. */
  readonly head: Tensor
  release(): void
}

/** A tiny checkpoint on a device. */
export async function loadFixture(name: string, device: Device): Promise<Fixture> {
  const c = textConfig(fixtureJson(`${name}/config.json`))
  const weights = new Weights(await openCheckpoint(openSource(fixtureModel(name))), device, {
    rename: canonicalName,
    format: (stored) => (device.target.operand === 'f16' ? 'f16' : stored),
  })
  const w = textWeights(weights, c)
  await weights.stream()
  const head = device.keep('head', [c.vocabulary, c.hidden], w.head.format)
  device.write(head, filled(await w.head.read(Array.from({ length: c.vocabulary }, (_, i) => i))))
  return {
    c,
    w,
    head,
    release() {
      weights.release()
      device.release(head)
    },
  }
}

export async function fixtureSession(name: string, device: Device): Promise<Session> {
  const { c, w, head } = await loadFixture(name, device)
  return textSession(device, c, w, head)
}

/** Repeatable token ids of a vocabulary. */
export function tokens(n: number, vocabulary: number, seed = 1): number[] {
  let s = seed
  return Array.from({ length: n }, () => {
    s = (Math.imul(s, 1664525) + 1013904223) >>> 0
    return (s >>> 8) % vocabulary
  })
}
