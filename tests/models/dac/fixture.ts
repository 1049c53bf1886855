import { readFileSync } from 'node:fs'
import { fixtureJson, fixturePath, fixtureTensors, type Stored } from '../../fixtures.ts'
import { blob, type Entry, f32, safetensors } from '../../weights/build.ts'

/** [codebooks, frames] as PyTorch has it to [frames, codebooks]. */
export function byFrame(codes: Stored): Uint32Array {
  const [books = 1, frames = 1] = codes.shape
  return Uint32Array.from({ length: books * frames }, (_, i) => {
    return codes.data[(i % books) * frames + Math.floor(i / books)]!
  })
}

export const tiny = fixtureTensors('dac-tiny/expected.safetensors')
export const nano = fixtureTensors('dac-nano/golden.safetensors')

interface Inputs {
  readonly decode: Readonly<Record<string, { readonly codes: readonly (readonly number[])[] }>>
}

/** The codes of a decode case of dac-tiny. */
export function tinyCodes(frames: number): Uint32Array {
  const { codes } = fixtureJson<Inputs>('dac-tiny/inputs.json').decode[frames]!
  return byFrame({ shape: [codes.length, frames], data: Float32Array.from(codes.flat()) })
}

/** Repeatable codes of so many frames. */
export function randomCodes(frames: number, seed = 1): Uint32Array {
  let s = seed
  return Uint32Array.from({ length: 9 * frames }, () => {
    s = (Math.imul(s, 1664525) + 1013904223) >>> 0
    return s >>> 22
  })
}

/** The files of dac-tiny with tensors replaced, added, or left out. */
export function tinyFiles(changes: Readonly<Record<string, Entry | undefined>>): Record<string, Blob> {
  const file = readFileSync(fixturePath('dac-tiny/model.safetensors'))
  const length = Number(file.readBigUInt64LE(0))
  const header = JSON.parse(file.subarray(8, 8 + length).toString()) as Record<
    string,
    { dtype: string; shape: number[]; data_offsets: [number, number] }
  >
  const entries = Object.entries(header).flatMap(([name, { dtype, shape, data_offsets }]): Entry[] => {
    if (name === '__metadata__' || name in changes) return []
    const [begin, end] = data_offsets.map((at) => 8 + length + at)
    return [{ name, dtype, shape, bytes: file.subarray(begin, end) }]
  })
  const added = Object.values(changes).filter((entry) => entry !== undefined)
  return {
    'config.json': blob(readFileSync(fixturePath('dac-tiny/config.json'), 'utf8')),
    'model.safetensors': blob(safetensors([...entries, ...added])),
  }
}

/** A small random codec of these strides, from the first layer to the last: channels 8 and 16, two codebooks. */
export function randomCodec(strides: readonly number[]): Record<string, Blob> {
  const hop = strides.reduce((a, b) => a * b)
  const [encoder, decoder] = [8, 8 * 2 ** strides.length]
  const latent = encoder * 2 ** strides.length
  const entries: Entry[] = []
  let seed = 1
  const tensor = (name: string, shape: number[], scale = 1, centre = 0): void => {
    const values = Array.from({ length: shape.reduce((a, b) => a * b) }, () => {
      seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0
      return centre + scale * (seed / 2 ** 31 - 1)
    })
    entries.push(f32(name, shape, values))
  }
  const conv = (at: string, shape: [number, number, number], out = shape[0]): void => {
    tensor(`${at}.weight`, shape, 1 / Math.sqrt(shape[1] * shape[2]))
    tensor(`${at}.bias`, [out], 0.1)
  }
  const snake = (at: string, C: number): void => tensor(`${at}.alpha`, [1, C, 1], 0.5, 1)
  const units = (at: string, C: number): void => {
    for (const unit of [1, 2, 3].map((i) => `${at}.res_unit${i}`)) {
      snake(`${unit}.snake1`, C)
      conv(`${unit}.conv1`, [C, C, 7])
      snake(`${unit}.snake2`, C)
      conv(`${unit}.conv2`, [C, C, 1])
    }
  }
  for (const at of [0, 1].map((i) => `quantizer.quantizers.${i}`)) {
    conv(`${at}.in_proj`, [8, latent, 1])
    conv(`${at}.out_proj`, [latent, 8, 1])
    tensor(`${at}.codebook.weight`, [1024, 8])
  }
  conv('decoder.conv1', [decoder, latent, 7])
  conv('encoder.conv1', [encoder, 1, 7])
  strides.forEach((s, b) => {
    const [up, down] = [decoder / 2 ** b, encoder * 2 ** b]
    snake(`decoder.block.${b}.snake1`, up)
    conv(`decoder.block.${b}.conv_t1`, [up, up / 2, 2 * s], up / 2)
    units(`decoder.block.${b}`, up / 2)
    units(`encoder.block.${b}`, down)
    snake(`encoder.block.${b}.snake1`, down)
    conv(`encoder.block.${b}.conv1`, [2 * down, down, 2 * s])
  })
  snake('decoder.snake1', 8)
  conv('decoder.conv2', [1, 8, 7])
  snake('encoder.snake1', latent)
  conv('encoder.conv2', [latent, latent, 3])
  const config = {
    ...{ model_type: 'dac', sampling_rate: 16000, hop_length: hop, hidden_size: latent },
    ...{ encoder_hidden_size: encoder, downsampling_ratios: strides },
    ...{ decoder_hidden_size: decoder, upsampling_ratios: strides },
    ...{ n_codebooks: 2, codebook_size: 1024, codebook_dim: 8 },
  }
  return { 'config.json': blob(JSON.stringify(config)), 'model.safetensors': blob(safetensors(entries)) }
}
