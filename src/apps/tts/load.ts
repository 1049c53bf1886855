import { untilAborted } from '../../device/abort.ts'
import type { Device } from '../../device/device.ts'
import { WeightsError } from '../../errors.ts'
import { loadDac } from '../../models/dac/load.ts'
import { CODEBOOKS, EOS } from '../../models/zonos/config.ts'
import { openZonos } from '../../models/zonos/load.ts'
import { zonosSession } from '../../models/zonos/session.ts'
import type { EspeakOptions } from '../../text/espeak.ts'
import { openPhonemizer } from '../../text/phonemes.ts'
import type { Progress } from '../../weights/load.ts'
import type { Files, Source } from '../../weights/source.ts'
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
 * Loads a Zonos v0.1 transformer and its codec: folders, URLs, `hf:owner/name@revision`, files by name, or what
 * `openSource` opened, behind a cache for example. What fails leaves nothing on the device.
 *
 * @throws WeightsError for what is missing, damaged or not understood; DeviceError; the signal's reason
 */
export async function loadTts(where: Where, options: LoadTtsOptions): Promise<Tts> {
  const { device, signal, onProgress } = options
  const checkpoint = await openZonos(where, { signal })
  const made: (() => void)[] = []
  const dispose = (): void => {
    for (const release of made.splice(0).reverse()) release()
  }
  try {
    const codec = await loadDac(options.codec, { device, signal, onProgress }) // the smaller one first
    made.push(() => codec.dispose())
    const { codebooks } = codec.config
    if (codebooks.count !== CODEBOOKS || codebooks.size !== EOS)
      throw new WeightsError(
        'unsupported',
        `loadTts: the codec has ${codebooks.count} codebooks of ${codebooks.size}, expected ${CODEBOOKS} of ${EOS}`,
      )
    const layers = options.weights === 'q8' ? 'q8' : undefined
    const { weights, release } = await checkpoint.load({ device, layers, signal, onProgress })
    made.push(release)
    const language = zonosSession(device, checkpoint.config, weights)
    made.push(() => language.dispose())
    await device.flush()
    const programs = [language.program('prefill'), language.program('decode'), codec.programs()]
    await untilAborted(Promise.all(programs), signal) // compiled before it speaks
    const phonemizer = () => openPhonemizer(options.phonemizer)
    return createTts({ language, weights, codec }, device, phonemizer, dispose)
  } catch (error) {
    dispose()
    throw error
  }
}
