import { untilAborted } from '../../device/abort.ts'
import type { Device } from '../../device/device.ts'
import { filled } from '../../device/fill.ts'
import type { TextConfig } from '../../models/qwen3_5/config.ts'
import { canonicalName } from '../../models/qwen3_5/names.ts'
import { textSession } from '../../models/qwen3_5/session.ts'
import { type Tower, visionTower } from '../../models/qwen3_5/tower.ts'
import { visionWeights } from '../../models/qwen3_5/vision_weights.ts'
import { textWeights } from '../../models/qwen3_5/weights.ts'
import { type StreamOptions, Weights } from '../../weights/load.ts'
import { openCheckpoint } from '../../weights/safetensors.ts'
import type { Source } from '../../weights/source.ts'
import { imageScorer, type Vision } from './images.ts'
import type { Scorer } from './scorer.ts'
import { sharedPrefixScorer } from './shared_prefix.ts'

/** A text model with its memory on one device. */
export interface Model extends Scorer {
  dispose(): void
}

export interface ModelParts {
  readonly source: Source
  readonly config: TextConfig
  /** Rows of the LM head that are read. */
  readonly labels: readonly number[]
  /** What kept prefixes may occupy on the device. */
  readonly prefixBytes?: number | undefined
  /** Of a model that sees. */
  readonly vision?: Vision | undefined
}

/** Streams the weights onto the device and compiles. What fails, or is aborted, leaves nothing there. */
export async function loadModel(
  { source, config, labels, prefixBytes, vision }: ModelParts,
  device: Device,
  { signal, onProgress }: StreamOptions,
): Promise<Model> {
  const made: (() => void)[] = []
  const dispose = (): void => {
    for (const release of made.splice(0).reverse()) release()
  }
  try {
    const checkpoint = await openCheckpoint(source, { signal })
    const { operand } = device.target
    const weights = new Weights(checkpoint, device, {
      rename: canonicalName,
      format: (stored) => (operand === 'f16' ? 'f16' : stored), // bf16 stays exact where f16 is not used
    })
    made.push(() => weights.release())
    if (!vision) weights.ignore((name) => name.startsWith('visual.'))
    const text = textWeights(weights, config)
    const visual = vision && visionWeights(weights, vision.config)
    await weights.stream({ signal, onProgress })

    const head = device.keep('labels', [labels.length, config.hidden], text.head.format)
    made.push(() => device.release(head))
    device.write(head, filled(await text.head.read(labels, signal)))
    let tower: Tower | undefined
    if (vision && visual) {
      tower = visionTower(device, vision.config, vision.processor, visual)
      made.push(tower.dispose)
    }
    const session = textSession(device, config, text, head, tower)
    made.push(() => session.dispose())
    await device.flush()
    await untilAborted(session.program(), signal) // compiled here, so that the first answer is as fast as the second
    const scorer = sharedPrefixScorer(session, prefixBytes)
    if (!vision || !tower) return { score: scorer.score, dispose }
    await untilAborted(tower.program(), signal)
    return { score: imageScorer(scorer, tower, vision.config.merge).score, dispose }
  } catch (error) {
    dispose()
    throw error
  }
}
