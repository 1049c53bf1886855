import { WeightsError } from '../../errors.ts'

/** What config.json of a Descript Audio Codec (transformers' DacModel) says, checked. */
export interface DacConfig {
  readonly sampleRate: number
  /** Samples of a frame. */
  readonly hop: number
  /** Channels of the latent between encoder and decoder. */
  readonly latent: number
  readonly encoder: { readonly channels: number; readonly strides: readonly number[] }
  readonly decoder: { readonly channels: number; readonly strides: readonly number[] }
  /** Codebooks of a frame, codes of a codebook, width of a code's vector. */
  readonly codebooks: { readonly count: number; readonly size: number; readonly width: number }
}

type Json = Readonly<Record<string, unknown>>

/** @throws WeightsError naming the key that is missing or not understood */
export function dacConfig(json: unknown): DacConfig {
  if (!json || typeof json !== 'object' || Array.isArray(json)) throw wrong('config.json', json, 'an object')
  const t = json as Json
  if (t.model_type !== 'dac') throw wrong('model_type', t.model_type, 'dac')
  const config: DacConfig = {
    sampleRate: whole(t, 'sampling_rate'),
    hop: whole(t, 'hop_length'),
    latent: whole(t, 'hidden_size'),
    encoder: { channels: whole(t, 'encoder_hidden_size'), strides: strides(t, 'downsampling_ratios') },
    decoder: { channels: whole(t, 'decoder_hidden_size'), strides: strides(t, 'upsampling_ratios') },
    codebooks: { count: whole(t, 'n_codebooks'), size: whole(t, 'codebook_size'), width: whole(t, 'codebook_dim') },
  }
  const { hop, latent, encoder, decoder } = config
  for (const [key, { strides }] of Object.entries({ downsampling_ratios: encoder, upsampling_ratios: decoder }))
    if (product(strides) !== hop) throw wrong(key, strides, `strides whose product is hop_length, ${hop}`)
  const widest = encoder.channels * 2 ** encoder.strides.length
  if (latent !== widest) throw wrong('hidden_size', latent, `${widest}, what the encoder's blocks make`)
  const halved = 2 ** decoder.strides.length
  if (decoder.channels % halved !== 0)
    throw wrong('decoder_hidden_size', decoder.channels, `a multiple of ${halved}, which its blocks halve`)
  return config
}

const product = (factors: readonly number[]): number => factors.reduce((a, b) => a * b, 1)
const isWhole = (n: unknown): n is number => Number.isSafeInteger(n) && (n as number) > 0
const LARGEST = 2 ** 20

function whole(t: Json, key: string): number {
  const value = t[key]
  if (isWhole(value) && value <= LARGEST) return value
  throw wrong(key, value, `a positive integer, at most ${LARGEST}`)
}

function strides(t: Json, key: string): readonly number[] {
  const value = t[key]
  if (Array.isArray(value) && value.length > 0 && value.every((s) => isWhole(s) && s > 1)) return value
  throw wrong(key, value, 'a list of integers above 1')
}

const wrong = (key: string, value: unknown, expected: string): WeightsError =>
  new WeightsError('unsupported', `config.json: ${key} is ${JSON.stringify(value) ?? 'missing'}, expected ${expected}`)
