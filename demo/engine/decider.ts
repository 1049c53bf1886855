import { type Device, loadDecider } from '../../src/index.ts'
import { sourceOf } from './sources.ts'
import { type ModelRef, type OnTransfer, timed } from './models.ts'

export const loadDeciderOf = ({ where }: ModelRef, device: Device, signal: AbortSignal, onTransfer: OnTransfer) =>
  timed(device, onTransfer, (options) => loadDecider(sourceOf(where, onTransfer), { ...options, signal }))
