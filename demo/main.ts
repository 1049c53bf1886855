import {
  choice,
  type Decider,
  type Device,
  type DeviceChoice,
  loadDecider,
  openDevice,
  type Progress,
  yesNo,
} from '../src/index.ts'

const find = <E extends Element>(selector: string): E => document.querySelector<E>(selector)!
const form = find<HTMLFormElement>('form')
const button = find<HTMLButtonElement>('button')
const badge = find('#badge')
const status = find('#status')
const error = find('#error')
const bars = find('#bars')
const models = new Map<string, { decider: Decider; device: Device }>() // by choice: loaded on first use, then kept

async function load(kind: DeviceChoice) {
  const device = await openDevice(kind)
  device.lost.then(() => models.delete(kind)) // the next question loads it again
  const onProgress = ({ loadedBytes, totalBytes }: Progress) => {
    status.textContent = `Loading ${Math.round((100 * loadedBytes) / totalBytes)} %`
  }
  try {
    const decider = await loadDecider('./models/decider-nano/', { device, onProgress })
    const model = { decider, device }
    models.set(kind, model)
    return model
  } catch (cause) {
    await device.dispose()
    throw cause
  }
}

/** The probability of every option; without options, of no and yes. */
async function ask(decider: Decider, text: string, question: string, options: readonly string[]) {
  if (options.length > 0)
    return (await decider.decide(text, { it: choice(question, options) })).answers.it.probabilities
  const { noul } = (await decider.decide(text, { it: yesNo(question) })).answers.it
  return { no: 1 - noul, yes: noul }
}

function bar([label, p]: [string, number]): HTMLLIElement {
  const item = document.createElement('li')
  const value = document.createElement('output')
  item.style.setProperty('--p', `${100 * p}%`)
  value.textContent = `${(100 * p).toFixed(1)} %`
  item.append(`${label} `, value)
  return item
}

form.addEventListener('submit', async (event) => {
  event.preventDefault()
  const { text, question, options, kind } = Object.fromEntries(new FormData(form)) as Record<string, string>
  const names = options!.split(',').map((name) => name.trim())
  button.disabled = true
  badge.textContent = error.textContent = ''
  bars.replaceChildren()
  try {
    const { decider, device } = models.get(kind!) ?? (await load(kind as DeviceChoice))
    badge.textContent = device.report.line
    const start = performance.now()
    const answer = await ask(decider, text!, question!, names.filter(Boolean))
    bars.append(...Object.entries(answer).map(bar))
    status.textContent = `${decider.model}, ${Math.round(performance.now() - start)} ms`
  } catch (cause) {
    status.textContent = ''
    error.textContent = (cause as Error).message
  } finally {
    button.disabled = false
  }
})
