import { computed, effect, signal } from '@preact/signals'
import { call, engine, isAbort, messageOf } from '../client.ts'
import type { Verdict } from '../engine/engine.ts'
import { ground, transferOf } from '../state.ts'
import { drawn, type Example, examples } from './examples.ts'
import { type Draft, draft, fromJson, toJson } from './questions.ts'
import { fromLink, type Shared, toLink } from './share.ts'

// The request as it is edited, and its answers: asked anew whenever it changes, and shown only while they are its own.

export const text = signal(examples[0]!.text)
export const image = signal<Blob | undefined>(undefined)
/** Questions are edited as a form or as JSON. */
export const mode = signal<'form' | 'json'>('form')
export const drafts = signal<readonly Draft[]>(fromJson(examples[0]!.questions)!)
export const json = signal('')
/** Why what was edited cannot be shared or shown, for people. */
export const notice = signal('')

interface Parsed {
  readonly questions?: unknown
  readonly error?: string
}

const parsed = computed((): Parsed => {
  if (mode.value === 'form') {
    const names = drafts.value.map(({ name }) => name)
    const twice = names.find((name, i) => names.indexOf(name) !== i)
    if (twice !== undefined) return { error: `two questions are called "${twice}"; give one of them another name` }
    return { questions: toJson(drafts.value) }
  }
  try {
    return { questions: JSON.parse(json.value) }
  } catch (error) {
    return { error: `the questions are not JSON: ${messageOf(error)}` }
  }
})

export const shared = computed((): Shared => ({ text: text.value, questions: parsed.value.questions ?? {} }))

/** `at`: the request that an answer belongs to. */
export type Live =
  | { readonly state: 'waiting' }
  | { readonly state: 'empty' }
  | { readonly state: 'failed'; readonly error: string }
  | { readonly state: 'answered'; readonly decision: Verdict; readonly ms: number; readonly dispatches: number }

export const live = signal<Live>({ state: 'waiting' })

const DEBOUNCE_MS = 160
let asking = new AbortController()
let timer = 0

effect(() => {
  const { questions, error } = parsed.value
  const request = { text: text.value, questions, image: image.value }
  const { device } = ground.value
  asking.abort(new DOMException('edited meanwhile', 'AbortError'))
  clearTimeout(timer)
  if (error !== undefined) live.value = { state: 'failed', error }
  else if (request.text.trim() === '' && !request.image) live.value = { state: 'empty' }
  else {
    live.value = { state: 'waiting' }
    if (device) timer = window.setTimeout(ask, DEBOUNCE_MS, request)
  }
})

/** Asks; what comes back after another edit is dropped. */
async function ask(request: { text: string; questions: unknown; image: Blob | undefined }): Promise<void> {
  asking = new AbortController()
  const { signal } = asking
  try {
    const reply = await call(signal, (id) => engine.decide(id, request, transferOf('decider')))
    if (!signal.aborted) live.value = { state: 'answered', ...reply }
  } catch (error) {
    if (!signal.aborted && !isAbort(error)) live.value = { state: 'failed', error: messageOf(error) }
  }
}

/** Shows a request; its questions in the form where that can show them. */
export function show({ text: words, questions }: Shared, picture?: Blob): void {
  const form = fromJson(questions)
  text.value = words
  image.value = picture
  json.value = JSON.stringify(questions, undefined, 2)
  if (form) drafts.value = form
  mode.value = form ? 'form' : 'json'
}

export const showExample = async (example: Example): Promise<void> => show(example, await drawn(example))

/** From the form to JSON and back. */
export function switchMode(to: 'form' | 'json'): void {
  notice.value = ''
  if (to === 'json') json.value = JSON.stringify(toJson(drafts.value), undefined, 2)
  else {
    const { questions, error } = parsed.value
    const form = fromJson(questions)
    if (!form) {
      notice.value = error ?? 'The form shows questions of texts alone; edit these as JSON.'
      return
    }
    drafts.value = form
  }
  mode.value = to
}

export const edit = (id: number, change: Partial<Draft>): void => {
  drafts.value = drafts.value.map((each) => (each.id === id ? { ...each, ...change } : each))
}
export const remove = (id: number): void => {
  drafts.value = drafts.value.filter((each) => each.id !== id)
}
export function add(): void {
  const names = drafts.value.map(({ name }) => name)
  let n = names.length + 1
  while (names.includes(`question${n}`)) n++
  const blank = { name: `question${n}`, type: 'noul', question: 'Is this good news?', options: '' } as const
  drafts.value = [...drafts.value, draft(blank)]
}

/** Puts the request into the address, and gives the address. */
export async function share(): Promise<string> {
  history.replaceState(undefined, '', await toLink(shared.value))
  return location.href
}

async function readLink(): Promise<void> {
  try {
    const found = await fromLink(location.hash)
    if (found) show(found)
  } catch {
    notice.value = 'The link does not hold a whole request; it may have been cut.'
  }
}
addEventListener('hashchange', readLink)
readLink()
