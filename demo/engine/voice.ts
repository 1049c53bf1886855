import data from '@echogarden/espeak-ng-emscripten/espeak-ng.data?url'
import { type Device, loadTts } from '../../src/index.ts'
import { sourceOf } from './sources.ts'
import { type ModelRef, type OnTransfer, timed } from './models.ts'

export const loadVoiceOf = (ref: ModelRef, device: Device, signal: AbortSignal, onTransfer: OnTransfer) =>
  timed(device, onTransfer, (options) => {
    const codec = sourceOf(ref.codec!, onTransfer)
    return loadTts(sourceOf(ref.where, onTransfer), { ...options, codec, phonemizer: { data }, signal })
  })
