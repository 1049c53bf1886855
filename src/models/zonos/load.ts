import type { Device } from '../../device/device.ts'
import { type Progress, Weights } from '../../weights/load.ts'
import { openCheckpoint } from '../../weights/safetensors.ts'
import { type Files, openSource, readJson, type Source } from '../../weights/source.ts'
import { type ZonosConfig, zonosConfig } from './config.ts'
import { type ZonosWeights, type ZonosWeightsOptions, zonosWeights } from './weights.ts'

export interface LoadZonosOptions extends ZonosWeightsOptions {
  readonly device: Device
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((progress: Progress) => void) | undefined
}

/** A checkpoint whose config.json has been read and no more. */
export interface ZonosCheckpoint {
  readonly config: ZonosConfig
  /**
   * Its weights on a device: matrices f16 where products take f16 operands, else as stored.
   *
   * @throws WeightsError for what is missing, damaged or not understood; DeviceError; the signal's reason
   */
  load(options: LoadZonosOptions): Promise<{
    readonly weights: ZonosWeights
    /** Frees them. */
    release(): void
  }>
}

/** Opens a Zonos v0.1 transformer. WeightsError for a config.json that is missing or not understood. */
export async function openZonos(
  where: string | URL | Files | readonly File[] | Source,
  { signal }: { readonly signal?: AbortSignal | undefined } = {},
): Promise<ZonosCheckpoint> {
  const source = openSource(where)
  const config = zonosConfig(await readJson(source, 'config.json', signal))
  return {
    config,
    async load({ device, signal, onProgress, layers }) {
      const stored = new Weights(await openCheckpoint(source, { signal }), device, {
        format: (stored) => (device.target.operand === 'f16' ? 'f16' : stored),
      })
      const weights = zonosWeights(stored, config, { layers })
      await stored.stream({ signal, onProgress })
      return { weights, release: () => stored.release() }
    },
  }
}
