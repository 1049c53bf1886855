import { untilAborted } from '../../device/abort.ts'
import type { Device } from '../../device/device.ts'
import type { TextConfig } from '../../models/qwen3_5/config.ts'
import { canonicalName } from '../../models/qwen3_5/names.ts'
import { textSession } from '../../models/qwen3_5/session.ts'
import { textWeights } from '../../models/qwen3_5/weights.ts'
import { type StreamOptions, Weights } from '../../weights/load.ts'
import { openCheckpoint } from '../../weights/safetensors.ts'
import type { Source } from '../../weights/source.ts'
import type { Scorer } from './scorer.ts'
import { sharedPrefixScorer } from './shared_prefix.ts'
import { filled } from '../../device/fill.ts'

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
}

/** Streams the weights onto the device and compiles. What fails, or is aborted, leaves nothing there. */
export async function loadModel(
  { source, config, labels, prefixBytes }: ModelParts,
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
    weights.ignore((name) => name.startsWith('visual.'))
    const text = textWeights(weights, config)
    await weights.stream({ signal, onProgress })

    const head = device.keep('labels', [labels.length, config.hidden], text.head.format)
    made.push(() => device.release(head))
    device.write(head, filled(await text.head.read(labels, signal)))
    const session = textSession(device, config, text, head)
    made.push(() => session.dispose())
    await device.flush()
    await untilAborted(session.program(), signal) // compiled here, so that the first answer is as fast as the second
    return { score: sharedPrefixScorer(session, prefixBytes).score, dispose }
  } catch (error) {
    dispose()
    throw error
  }
}
