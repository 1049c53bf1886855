import { computed, effect, signal } from '@preact/signals'
import { call, callback, embedded, engine, isAbort, messageOf } from './client.ts'
import type { DeviceInfo } from './engine/devices.ts'
import type { Transfer } from './engine/sources.ts'
import type { ModelRef } from './engine/models.ts'
import { meter } from './models/meter.ts'

// What all tabs of the page share: the view, the device and the models in use.

export const views = ['decide', 'speak', 'models', 'benchmark'] as const
export type View = (typeof views)[number]

/** The address names the view, and other places on it. */
const viewOf = (hash: string): View | undefined => views.find((view) => hash.slice(1).split('=')[0] === view)
export const view = signal<View>(viewOf(location.hash) ?? 'decide')
addEventListener('hashchange', () => {
  view.value = viewOf(location.hash) ?? view.value
})

export const choices = { auto: 'The best there is', webgpu: 'WebGPU', cpu: 'CPU' } as const
export type Choice = keyof typeof choices

const CHOICE = 'pronounce device'
export const choice = signal<Choice>(storedChoice())
export const device = signal<DeviceInfo | undefined>(undefined)
export const deviceError = signal('')
export const hasWebgpu = 'gpu' in navigator && navigator.gpu !== undefined

function storedChoice(): Choice {
  const stored = localStorage.getItem(CHOICE) ?? ''
  return stored in choices ? (stored as Choice) : 'auto'
}

/** Opens a device; the one before stays where this one cannot be had. */
export async function openDevice(wanted: Choice): Promise<void> {
  deviceError.value = ''
  device.value = undefined
  choice.value = wanted
  try {
    device.value = await engine.open(wanted)
    localStorage.setItem(CHOICE, wanted)
  } catch (error) {
    deviceError.value = messageOf(error)
    if (wanted === 'auto') return
    choice.value = 'auto'
    device.value = await engine.open('auto')
  }
}

/** A model that is on its way, as far as the engine has told. */
export interface Loading {
  readonly ref: ModelRef
  readonly transfer: Transfer | undefined
  readonly bytesPerSecond: number
}

export const inUse = signal<{ readonly [kind in ModelRef['kind']]: ModelRef }>(embedded)
export const loading = signal<{ readonly [kind in ModelRef['kind']]?: Loading | undefined }>({})
export const loadErrors = signal<{ readonly [where: string]: string }>({})
const loads: { [kind in ModelRef['kind']]?: AbortController } = {}

/** Shows how far a model is; the last report ends it. */
export function transferOf(kind: ModelRef['kind']): (transfer: Transfer) => void {
  const rate = meter()
  return callback((transfer) => {
    const done = transfer.what === 'onto the device' && transfer.loadedBytes === transfer.totalBytes
    const ref = loading.peek()[kind]?.ref ?? inUse.peek()[kind]
    loading.value = { ...loading.peek(), [kind]: done ? undefined : { ref, transfer, bytesPerSecond: rate(transfer) } }
  })
}

/** Downloads a model if it has to, and uses it from now on. */
export async function use(ref: ModelRef): Promise<void> {
  const { kind } = ref
  cancelLoad(kind)
  const controller = new AbortController()
  loads[kind] = controller
  loading.value = { ...loading.value, [kind]: { ref, transfer: undefined, bytesPerSecond: 0 } }
  loadErrors.value = { ...loadErrors.value, [ref.title]: '' }
  try {
    await call(controller.signal, (id) => engine.load(id, ref, transferOf(kind)))
    inUse.value = { ...inUse.value, [kind]: ref }
  } catch (error) {
    if (loads[kind] !== controller) return // another took its place
    inUse.value = { ...inUse.value, [kind]: embedded[kind] }
    if (!isAbort(error)) loadErrors.value = { ...loadErrors.value, [ref.title]: messageOf(error) }
  } finally {
    if (loads[kind] === controller) {
      delete loads[kind]
      loading.value = { ...loading.value, [kind]: undefined }
    }
  }
}

export function cancelLoad(kind: ModelRef['kind']): void {
  loads[kind]?.abort(new DOMException('cancelled', 'AbortError'))
}

/** Changes whenever an answer to the same question may be another: with the device and with the model. */
export const ground = computed(() => ({ device: device.value, decider: inUse.value.decider }))

effect(() => {
  document.title = view.value === 'decide' ? 'pronounce' : `pronounce: ${view.value}`
})
