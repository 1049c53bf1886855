import type { Device } from '../../device/device.ts'
import { textConfig } from '../../models/qwen3_5/config.ts'
import { canonicalName } from '../../models/qwen3_5/names.ts'
import { textSession } from '../../models/qwen3_5/session.ts'
import { textWeights } from '../../models/qwen3_5/weights.ts'
import { createTokenizer } from '../../text/tokenizer.ts'
import { type Progress, Weights } from '../../weights/load.ts'
import { openCheckpoint } from '../../weights/safetensors.ts'
import { type Files, openSource, readJson, readText, type Source } from '../../weights/source.ts'
import { parseConfig } from './config.ts'
import { createDecider, type Decider } from './decider.ts'
import { labelTable } from './labels.ts'

export interface LoadOptions {
  readonly device: Device
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((progress: Progress) => void) | undefined
}

/**
 * Loads a Decider checkpoint: a folder, a URL, `hf:owner/name@revision`, or files by name.
 *
 * @throws WeightsError for what is missing, damaged or not understood; DeviceError; the signal's reason
 */
export async function loadDecider(
  where: string | URL | Files | readonly File[] | Source,
  { device, signal, onProgress }: LoadOptions,
): Promise<Decider> {
  const source = openSource(where)
  const model = textConfig(await readJson(source, 'config.json', signal))
  const config = parseConfig(await readIfThere(source, 'decider_config.json', signal))
  const tokenizer = createTokenizer(
    await readJson(source, 'tokenizer.json', signal),
    JSON.parse((await readIfThere(source, 'tokenizer_config.json', signal)) ?? '{}'),
  )
  const labels = labelTable(tokenizer)

  const checkpoint = await openCheckpoint(source, { signal })
  const { operand } = device.target
  const weights = new Weights(checkpoint, device, {
    rename: canonicalName,
    format: (stored) => (operand === 'f16' ? 'f16' : stored), // bf16 stays exact where f16 is not used
  })
  weights.ignore((name) => name.startsWith('visual.'))
  const text = textWeights(weights, model)
  await weights.stream({ signal, onProgress })

  const head = device.keep('labels', [labels.length, model.hidden], text.head.format)
  const rows = await text.head.read(labels, signal)
  device.write(head, rows)
  await device.flush()
  const session = textSession(device, model, text, head)
  await session.program() // compiled here, so that the first answer is as fast as the second

  return createDecider({
    tokenizer,
    config,
    labels,
    maxTokens: model.maxPositions,
    scorer: { score: (rows, options) => session.logits(rows, options) },
    dispose() {
      session.dispose()
      device.release(head)
      weights.release()
    },
  })
}

const readIfThere = async (
  source: Source,
  path: string,
  signal: AbortSignal | undefined,
): Promise<string | undefined> =>
  (await source.size(path, signal)) === undefined ? undefined : readText(source, path, signal)
