import { untilAborted } from '../../device/abort.ts'
import type { Device } from '../../device/device.ts'
import { dacConfig } from '../../models/dac/config.ts'
import { dacSession } from '../../models/dac/session.ts'
import { dacWeights } from '../../models/dac/weights.ts'
import { zonosConfig } from '../../models/zonos/config.ts'
import { zonosSession } from '../../models/zonos/session.ts'
import { zonosWeights } from '../../models/zonos/weights.ts'
import type { EspeakOptions } from '../../text/espeak.ts'
import { openPhonemizer } from '../../text/phonemes.ts'
import { type Progress, Weights } from '../../weights/load.ts'
import { openCheckpoint } from '../../weights/safetensors.ts'
import { type Files, openSource, readJson, type Source } from '../../weights/source.ts'
import { createTts, type Tts } from './tts.ts'

export type Where = string | URL | Files | readonly File[] | Source

export interface LoadTtsOptions {
  readonly device: Device
  /** A DAC checkpoint of 44.1 kHz and 9 codebooks, as transformers saves it. */
  readonly codec: Where
  /** 'q8': 8-bit weights in the language model's layers, half the memory and the reads. Default: 16 bits or as stored. */
  readonly weights?: 'auto' | 'q8' | undefined
  readonly signal?: AbortSignal | undefined
  /** Of both checkpoints, one after the other. */
  readonly onProgress?: ((progress: Progress) => void) | undefined
  /** Where a bundled page has espeak-ng's dictionaries. */
  readonly phonemizer?: Pick<EspeakOptions, 'data'> | undefined
}

/**
 * Loads a Zonos v0.1 transformer and its codec: folders, URLs, `hf:owner/name@revision`, or files by name. What fails
 * leaves nothing on the device.
 *
 * @throws WeightsError for what is missing, damaged or not understood; DeviceError; the signal's reason
 */
export async function loadTts(where: Where, options: LoadTtsOptions): Promise<Tts> {
  const { device, signal, onProgress } = options
  const [model, codec] = [openSource(where), openSource(options.codec)]
  const config = zonosConfig(await readJson(model, 'config.json', signal))
  const codecConfig = dacConfig(await readJson(codec, 'config.json', signal))
  const made: (() => void)[] = []
  const dispose = (): void => {
    for (const release of made.splice(0).reverse()) release()
  }
  const loader = async (source: Source): Promise<Weights> => {
    const weights = new Weights(await openCheckpoint(source, { signal }), device, {
      format: (stored) => (device.target.operand === 'f16' ? 'f16' : stored),
    })
    made.push(() => weights.release())
    return weights
  }
  try {
    const [ofModel, ofCodec] = [await loader(model), await loader(codec)]
    const [weights, codecWeights] = [
      zonosWeights(ofModel, config, options.weights === 'q8' ? { layers: 'q8' } : {}),
      dacWeights(ofCodec, codecConfig),
    ]
    await ofModel.stream({ signal, onProgress })
    await ofCodec.stream({ signal, onProgress })
    const language = zonosSession(device, config, weights)
    made.push(() => language.dispose())
    const decoder = dacSession(device, codecConfig, codecWeights)
    await device.flush()
    await untilAborted(Promise.all([language.program('decode'), decoder.programs()]), signal) // compiled before it speaks
    const phonemizer = () => openPhonemizer({ ...options.phonemizer, signal })
    return createTts({ language, weights, codec: decoder }, device, phonemizer, dispose)
  } catch (error) {
    dispose()
    throw error
  }
}
