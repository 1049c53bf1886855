import type { Device } from '../../device/device.ts'
import { WeightsError } from '../../errors.ts'
import { textConfig, visionConfig } from '../../models/qwen3_5/config.ts'
import { expectSamePatches, processorConfig } from '../../models/qwen3_5/processor.ts'
import { createTokenizer, type Tokenizer } from '../../text/tokenizer.ts'
import type { Progress } from '../../weights/load.ts'
import { type Files, openSource, readJson, readText, type Source } from '../../weights/source.ts'
import type { Decider } from './api.ts'
import { chatFrame } from './chat_template.ts'
import { parseConfig } from './config.ts'
import { createDecider } from './decider.ts'
import { holdModel } from './holder.ts'
import { createEyes, type Vision } from './images.ts'
import { labelTable } from './labels.ts'
import { loadModel } from './model.ts'
import { readSoftcap } from './softcap.ts'
import { type TemperatureOptions, withTemperatures } from './temperature.ts'

export interface LoadOptions extends TemperatureOptions {
  readonly device: Device
  readonly signal?: AbortSignal | undefined
  /** Also called while `recover` loads again. */
  readonly onProgress?: ((progress: Progress) => void) | undefined
  /** What kept beginnings of rows (states, schemas) may occupy on the device; 256 MiB by default. */
  readonly prefixBytes?: number | undefined
}

/**
 * Loads a Decider checkpoint: a folder, a URL, `hf:owner/name@revision`, files by name, or what `openSource` opened,
 * behind a cache for example. What fails leaves nothing on the device.
 *
 * @throws WeightsError for what is missing, damaged or not understood; DeviceError; the signal's reason
 */
export async function loadDecider(
  where: string | URL | Files | readonly File[] | Source,
  { device, signal, onProgress, prefixBytes, ...temperatures }: LoadOptions,
): Promise<Decider> {
  const source = openSource(where)
  const modelConfig = await readJson(source, 'config.json', signal)
  const text = textConfig(modelConfig)
  const softcap = readSoftcap(modelConfig)
  const tower = visionConfig(modelConfig) !== undefined && (await source.size(PROCESSOR, signal)) !== undefined
  const stored = parseConfig(await ifThere(readText, source, 'decider_config.json', signal), tower)
  const config = { ...stored, temperatures: withTemperatures(stored.temperatures, temperatures) }
  const tokenizerConfig = await ifThere(readJson, source, 'tokenizer_config.json', signal)
  const tokenizer = createTokenizer(await readJson(source, 'tokenizer.json', signal), tokenizerConfig)
  const labels = labelTable(tokenizer)
  const chat = config.layout === 'chat' ? await loadChatFrame(source, tokenizer, tokenizerConfig, signal) : undefined
  const vision = config.vision ? await loadVision(source, modelConfig, signal) : undefined
  const holder = await holdModel(
    device,
    (device, signal) =>
      loadModel({ source, config: text, labels, prefixBytes, vision }, device, { signal, onProgress }),
    signal,
  )
  const { dispose } = holder
  return createDecider({
    tokenizer,
    config,
    labels,
    chat,
    softcap,
    ...(vision && { eyes: createEyes(tokenizer, vision, text.vocabulary) }),
    maxTokens: text.maxPositions,
    scorer: holder,
    holder,
    dispose,
  })
}

const PROCESSOR = 'preprocessor_config.json'

async function loadVision(source: Source, json: unknown, signal: AbortSignal | undefined): Promise<Vision> {
  const config = visionConfig(json)
  if (!config)
    throw new WeightsError(
      'format',
      `${source.name}: decider_config.json says vision, config.json has no vision_config; download the model again`,
    )
  const processor = processorConfig(await readJson(source, PROCESSOR, signal))
  expectSamePatches(processor, config)
  return { config, processor }
}

/** Of chat_template.jinja, or of the template inside tokenizer_config.json. */
async function loadChatFrame(source: Source, tokenizer: Tokenizer, config: unknown, signal: AbortSignal | undefined) {
  const entries = Object.entries((config ?? {}) as Record<string, unknown>)
  const given = await ifThere(readText, source, 'chat_template.jinja', signal)
  const template = given ?? entries.find(([key]) => key === 'chat_template')?.[1]
  if (typeof template === 'string') return chatFrame(template, tokenizer, specialTexts(entries))
  throw new WeightsError(
    'missing',
    `${source.name}: layout is chat and there is no chat template, expected chat_template.jinja; download it too`,
  )
}

/** bos_token and the like, which are a text or have one. */
const specialTexts = (entries: readonly [string, unknown][]): Record<string, string> =>
  Object.fromEntries(
    entries.flatMap(([key, token]) => {
      const text = (token as { content?: unknown } | null)?.content ?? token
      return key.endsWith('_token') && typeof text === 'string' ? [[key, text]] : []
    }),
  )

const ifThere = async <A>(
  read: (source: Source, path: string, signal?: AbortSignal) => Promise<A>,
  source: Source,
  path: string,
  signal: AbortSignal | undefined,
): Promise<A | undefined> => ((await source.size(path, signal)) === undefined ? undefined : read(source, path, signal))
