import { InputError } from '../../errors.ts'
import { checkConditions } from '../../models/zonos/conditioning.ts'
import { type Conditions, conditionValues } from '../../models/zonos/conditions.ts'
import type { ZonosConfig } from '../../models/zonos/config.ts'
import type { Codes } from '../../models/zonos/delay.ts'
import { expectScale } from '../../models/zonos/request.ts'
import { type Sampling, samplingOf } from '../../models/zonos/sampler.ts'
import { randomVoice } from '../../models/zonos/voice.ts'
import { applyDictionary, type Pronunciations } from '../../text/dictionary.ts'
import { type NumberStyle, numberStyleOf, readNumbers } from '../../text/numbers.ts'

/** Of a piece, at most. */
export const DEFAULT_SECONDS = 30

export interface SayOptions extends Conditions {
  /** Seed of the voice where there is no `speaker`: the same seed, the same voice. Default 0. */
  readonly voice?: number | undefined
  /** What the speech is to be unlike, instead of like nothing in particular (classifier-free guidance). */
  readonly negative?: Conditions | undefined
  /** How far it is to be from that. Default 2; 1 leaves the comparison out and is faster. */
  readonly cfgScale?: number | undefined
  /** `minFrames`, where it is left out, is two fifths of what the phonemes take at the usual rate. */
  readonly sampling?: Partial<Sampling> | undefined
  /** How numbers are read; the words of 'spoken' and 'upstream' are English. Default: 'spoken' in English, else 'as written'. */
  readonly numbers?: NumberStyle | undefined
  /** Words, and the /IPA/ or other words that are said for them; those in lower case are found in any case. */
  readonly dictionary?: Pronunciations | undefined
  /** Seconds of a piece at most, 30 by default. A long text is said in several pieces. */
  readonly maxSeconds?: number | undefined
  /** Codes of earlier audio that is continued and whose words the text begins with; its sound is not said again. */
  readonly audioPrefix?: Codes | undefined
  readonly signal?: AbortSignal | undefined
  /** What is going to be said, piece by piece, as soon as it is known. */
  readonly onPhonemes?: ((phonemes: string) => void) | undefined
  readonly onProgress?: ((progress: SpeechProgress) => void) | undefined
  /** What went wrong with a piece and what was done about it, when it happens; `warnings` of the result has them all. */
  readonly onWarning?: ((message: string) => void) | undefined
}

export interface SpeechProgress {
  readonly frames: number
  /** By the number of phonemes and the speaking rate: speech of usual speed has about so many. */
  readonly expectedFrames: number
  readonly seconds: number // since it began
}

/** The conditions among the options, with the voice of a seed where there is no speaker. */
export function conditionsOf(options: SayOptions, { conditioners }: Pick<ZonosConfig, 'conditioners'>): Conditions {
  const { voice = 0, negative: _n, cfgScale: _c, sampling: _s, maxSeconds: _m, ...rest } = options
  const { numbers: _u, dictionary: _d, audioPrefix: _a, signal: _g, ...more } = rest
  const { onPhonemes: _h, onProgress: _p, onWarning: _w, ...conditions } = more
  if (conditions.speaker !== undefined) return conditions
  const speaker = conditioners.find(({ name }) => name === 'speaker')
  return speaker?.kind === 'passthrough' ? { ...conditions, speaker: randomVoice(voice, speaker.width) } : conditions
}

/** The text with numbers in words and the dictionary's entries in place. */
export function readText(text: string, { language, numbers, dictionary = {} }: SayOptions): string {
  return readNumbers(applyDictionary(text, dictionary), numbers ?? numberStyleOf(language ?? 'en-us'))
}

/**
 * Whether a model of this config can say something so. It asks for neither weights nor a text.
 *
 * @throws InputError naming the setting that is out of range
 */
export function checkOptions(options: SayOptions, config: Pick<ZonosConfig, 'conditioners'>): void {
  const { maxSeconds = DEFAULT_SECONDS, cfgScale = 2, negative, sampling } = options
  if (!(maxSeconds > 0 && Number.isFinite(maxSeconds)))
    throw new InputError(`say: maxSeconds is ${maxSeconds}, expected a positive number`)
  expectScale(cfgScale)
  samplingOf(sampling)
  readText('', options)
  checkConditions(config.conditioners, conditionValues(conditionsOf(options, config)))
  if (negative) checkConditions(config.conditioners, conditionValues(negative))
}
