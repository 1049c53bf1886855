/// <reference lib="esnext.disposable" preserve="true" />
/**
 * Decider and Zonos on any GPU a browser can see, in Node and Deno too, and on the CPU where there is none.
 * @module
 */

export type { Answer, AnswerTo, ChoiceAnswer, ScoreAnswer, YesNoAnswer } from './apps/decider/answer.ts'
/** Fits the temperatures that go into decider_config.json. */
export {
  type Calibration,
  type CalibrationRecord,
  calibrate,
  type Fit,
  fitTemperature,
} from './apps/decider/calibrate.ts'
/** Reads questions from JSON, in the form that servers and schema files use. */
export { readQuestions } from './apps/decider/ask.ts'
export type {
  Answered,
  AskOptions,
  DecideOptions,
  Decider,
  Decision,
  JsonOptions,
  PackedAnswer,
  PackedItem,
  PackedQuestion,
  Schema,
  Usage,
} from './apps/decider/api.ts'
export type { ImageOptions } from './apps/decider/images.ts'
export { Float, type JsonValue } from './apps/decider/json.ts'
/** Reads JSON so that states keep their keys in order and their numbers as they are written. */
export { parseJson } from './apps/decider/json_reader.ts'
export type { JsonAnswer, JsonField, JsonSchema } from './apps/decider/json_schema.ts'
export type { Limits } from './apps/decider/limits.ts'
/** Loads a Decider: text and typed questions in, calibrated probabilities out. */
export { type LoadOptions, loadDecider } from './apps/decider/load.ts'
/** How right a model is, and how well its probabilities say so. */
export { type Bin, binsOf, type Judged, type Metrics, metricsOf } from './apps/decider/metrics.ts'
/** Typed questions. */
export {
  type ChoiceQuestion,
  choice,
  type Question,
  type Questions,
  type ScoreQuestion,
  score,
  type YesNoQuestion,
  yesNo,
} from './apps/decider/question.ts'
export type { Logits, Row, Scorer } from './apps/decider/scorer.ts'
export type { AnswerType, Order } from './apps/decider/temperature.ts'
export type { TypedOptions } from './apps/decider/typed.ts'
export type { Wire, WireCall, WireOptions } from './apps/decider/wire.ts'
/** Compares speech on devices with a reference. */
export {
  type SpeechDrift,
  type SpeechParity,
  type SpeechParityOptions,
  speechParity,
} from './apps/parity/speech.ts'
/** Loads a voice: text in, speech out. */
export { type LoadTtsOptions, loadTts } from './apps/tts/load.ts'
/** Checks settings by a model's config.json alone. */
export { checkSay } from './apps/tts/check.ts'
export type { Ended } from './apps/tts/guards.ts'
export type { SayOptions, SpeechProgress } from './apps/tts/options.ts'
export type { Speech, SpeechChunk, SpeechReport, Spoken, SpokenPiece } from './apps/tts/speech.ts'
export type { Tts } from './apps/tts/tts.ts'
/** The matrix products of models, for `tune`. */
export { productsOf, publishedProducts } from './apps/tuner/products.ts'
export type { Device, DeviceReport, Profile, ProfiledDispatch } from './device/device.ts'
/** Opens the device that was asked for, and says which and why. */
export { type DeviceChoice, deviceChoices, type OpenOptions, openDevice } from './device/open.ts'
/** What can go wrong, each with a code. */
export { DeviceError, type ErrorCode, InputError, RequestError, ShapeError, WeightsError } from './errors.ts'
export type { Place } from './device/place.ts'
/** What `tune` has kept on this host, for all adapters. */
export { keptTunings, type Tuning, type Tunings } from './device/tunings.ts'
export type { LinearPlan, LinearRule, Precision } from './graph/target.ts'
export type { MatrixProduct } from './kernels/tune/product.ts'
/** Measures the plans of matrix products on a device and keeps the best for it. */
export { type TuneOptions, type TuneProgress, tune } from './kernels/tune/tune.ts'
export type { Tuned, TunedHeight } from './kernels/tune/tune_product.ts'
/** WAV files of one channel and many, in and out. */
export { decodeWav, encodeWav, mono, type Sound, type WavFormat, wavHeader, wavSamples } from './media/wav.ts'
/** The pixels of an image, as `decide` reads them. */
export { type ImageInput, type RgbaPixels, readImage } from './media/image.ts'
export type { RgbImage } from './media/pixels.ts'
export type { Conditions, Emotions } from './models/zonos/conditions.ts'
export type { Codes } from './models/zonos/delay.ts'
export type { Sampling } from './models/zonos/sampler.ts'
/** A voice made up of a seed. */
export { randomVoice } from './models/zonos/voice.ts'
/** A text in sentences, with its numbers in words, and with a dictionary's words in IPA. */
export { applyDictionary, type Pronunciations } from './text/dictionary.ts'
export { type NumberStyle, numberStyleOf, readNumbers } from './text/numbers.ts'
export { type SentenceOptions, sentences } from './text/sentences.ts'
/** The languages that Zonos knows, by espeak-ng's codes. */
export { languages } from './text/languages.ts'
/** Text to IPA by espeak-ng, which is a package of its own. */
export { openPhonemizer, type Phonemizer } from './text/phonemes.ts'
/** Models that were loaded from elsewhere, kept for the next time. */
export { type Cache, type CachedModel, type CacheOptions, openCache } from './weights/cache/cache.ts'
export type { DownloadProgress } from './weights/cache/progress.ts'
/** The published models, with what a download takes and what they need on a device. */
export { type KnownModel, knownModels } from './weights/known_models.ts'
export type { Progress } from './weights/load.ts'
/** Where a checkpoint is: a folder, a URL, hf:owner/name or files; behind a cache if asked for. */
export { type Files, openSource, type Source, type SourceOptions } from './weights/source.ts'
