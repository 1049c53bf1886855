import type { Device } from '../../../src/device/device.ts'
import { filled } from '../../../src/device/fill.ts'
import type { RgbImage } from '../../../src/media/pixels.ts'
import { createAlbum } from '../../../src/models/qwen3_5/album.ts'
import { textConfig, type VisionConfig, visionConfig } from '../../../src/models/qwen3_5/config.ts'
import { canonicalName } from '../../../src/models/qwen3_5/names.ts'
import { type ProcessedImage, processImage, processorConfig } from '../../../src/models/qwen3_5/processor.ts'
import { textSession } from '../../../src/models/qwen3_5/session.ts'
import { visionTower } from '../../../src/models/qwen3_5/tower.ts'
import { visionWeights } from '../../../src/models/qwen3_5/vision_weights.ts'
import { textWeights } from '../../../src/models/qwen3_5/weights.ts'
import { Weights } from '../../../src/weights/load.ts'
import { openCheckpoint } from '../../../src/weights/safetensors.ts'
import { openSource } from '../../../src/weights/source.ts'
import { fixtureJson, fixtureModel, fixtureTensors } from '../../fixtures.ts'

export const name = 'qwen35-vision-tiny'
const expected = fixtureTensors(`${name}/expected.safetensors`)
export const golden = (key: string): Float32Array => expected.get(key).data
export const goldenShape = (key: string): readonly number[] => expected.get(key).shape

interface Inputs {
  readonly images: Record<'solid' | 'gradient' | 'noise', { readonly height: number; readonly width: number }>
  readonly size: Record<'default' | 'small', { readonly shortest_edge: number; readonly longest_edge: number }>
  readonly prompts: Record<
    string,
    { readonly ids: number[]; readonly images: string[]; readonly rope_delta?: number; readonly cont_ids?: number[] }
  >
}
export const given = fixtureJson<Inputs>(`${name}/inputs.json`)

const preprocessor = fixtureJson<object>(`${name}/preprocessor_config.json`)
export const sizes = ['default', 'small'] as const
export const processors = {
  default: processorConfig(preprocessor),
  small: processorConfig({ ...preprocessor, size: given.size.small }),
}

/** 'noise.small' and so on, processed. */
export const images: Readonly<Record<string, ProcessedImage>> = Object.fromEntries(
  Object.entries(given.images).flatMap(([image, { width, height }]) => {
    const rgb: RgbImage = { width, height, data: Uint8Array.from(golden(`${image}.rgb`)) }
    return sizes.map((size) => [`${image}.${size}`, processImage(rgb, processors[size])] as const)
  }),
)

export const config = fixtureJson<object>(`${name}/config.json`)
export const vision = visionConfig(config) as VisionConfig

/** The tiny checkpoint with its tower on a device, read through its whole LM head. */
export async function loadVision(device: Device) {
  const c = textConfig(config)
  const weights = new Weights(await openCheckpoint(openSource(fixtureModel(name))), device, {
    rename: canonicalName,
    format: (stored) => (device.target.operand === 'f16' ? 'f16' : stored),
  })
  const text = textWeights(weights, c)
  const eyes = visionWeights(weights, vision)
  await weights.stream()
  const head = device.keep('head', [c.vocabulary, c.hidden], text.head.format)
  device.write(head, filled(await text.head.read(Array.from({ length: c.vocabulary }, (_, i) => i))))
  const tower = visionTower(device, vision, processors.default, eyes)
  const session = textSession(device, c, text, head, tower)
  return { c, tower, session, album: createAlbum(c.vocabulary, vision.merge) }
}
