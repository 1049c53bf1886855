import type { Device } from '../../device/device.ts'
import { textConfig } from '../../models/qwen3_5/config.ts'
import { createTokenizer } from '../../text/tokenizer.ts'
import type { Progress } from '../../weights/load.ts'
import { type Files, openSource, readJson, readText, type Source } from '../../weights/source.ts'
import { parseConfig } from './config.ts'
import { createDecider, type Decider } from './decider.ts'
import { holdModel } from './holder.ts'
import { labelTable } from './labels.ts'
import { loadModel } from './model.ts'

export interface LoadOptions {
  readonly device: Device
  readonly signal?: AbortSignal | undefined
  /** Also called while `recover` loads again. */
  readonly onProgress?: ((progress: Progress) => void) | undefined
}

/**
 * Loads a Decider checkpoint: a folder, a URL, `hf:owner/name@revision`, files by name, or what `openSource` opened,
 * behind a cache for example. What fails leaves nothing on the device.
 *
 * @throws WeightsError for what is missing, damaged or not understood; DeviceError; the signal's reason
 */
export async function loadDecider(
  where: string | URL | Files | readonly File[] | Source,
  { device, signal, onProgress }: LoadOptions,
): Promise<Decider> {
  const source = openSource(where)
  const text = textConfig(await readJson(source, 'config.json', signal))
  const config = parseConfig(await ifThere(readText, source, 'decider_config.json', signal))
  const tokenizer = createTokenizer(
    await readJson(source, 'tokenizer.json', signal),
    await ifThere(readJson, source, 'tokenizer_config.json', signal),
  )
  const labels = labelTable(tokenizer)
  const holder = await holdModel(
    device,
    (device, signal) => loadModel({ source, config: text, labels }, device, { signal, onProgress }),
    signal,
  )
  const { dispose } = holder
  return createDecider({ tokenizer, config, labels, maxTokens: text.maxPositions, scorer: holder, holder, dispose })
}

const ifThere = async <A>(
  read: (source: Source, path: string, signal?: AbortSignal) => Promise<A>,
  source: Source,
  path: string,
  signal: AbortSignal | undefined,
): Promise<A | undefined> => ((await source.size(path, signal)) === undefined ? undefined : read(source, path, signal))
