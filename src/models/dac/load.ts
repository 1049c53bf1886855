import type { Device } from '../../device/device.ts'
import { type Progress, Weights } from '../../weights/load.ts'
import { openCheckpoint } from '../../weights/safetensors.ts'
import { type Files, openSource, readJson, type Source } from '../../weights/source.ts'
import { dacConfig } from './config.ts'
import { type DacSession, dacSession } from './session.ts'
import { dacWeights } from './weights.ts'

export interface LoadDacOptions {
  readonly device: Device
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((progress: Progress) => void) | undefined
}

/** A codec and its weights on a device. */
export interface LoadedDac extends DacSession {
  /** Frees the weights. */
  dispose(): void
}

/**
 * Loads a DAC checkpoint as transformers saves it: config.json and model.safetensors with plain weights. The decoder is
 * f16 where products take f16 operands, else as stored.
 *
 * @throws WeightsError for what is missing, damaged or not understood; DeviceError; the signal's reason
 */
export async function loadDac(
  where: string | URL | Files | readonly File[] | Source,
  { device, signal, onProgress }: LoadDacOptions,
): Promise<LoadedDac> {
  const source = openSource(where)
  const config = dacConfig(await readJson(source, 'config.json', signal))
  const weights = new Weights(await openCheckpoint(source, { signal }), device, {
    format: (stored) => (device.target.operand === 'f16' ? 'f16' : stored),
  })
  const w = dacWeights(weights, config)
  await weights.stream({ signal, onProgress })
  return { ...dacSession(device, config, w), dispose: () => weights.release() }
}
