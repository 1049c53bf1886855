import { useSignal } from '@preact/signals'

const SAID_MS = 1600

/** Copies what `text` gives, and says that it did. */
export function Copy({ label, text }: { label: string; text: () => string | Promise<string> }) {
  const said = useSignal('')
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(await text())
      said.value = 'Copied'
    } catch {
      said.value = 'Not allowed'
    }
    setTimeout(() => {
      said.value = ''
    }, SAID_MS)
  }
  return (
    <button type="button" class="quiet copy" onClick={copy}>
      <span aria-live="polite">{said.value || label}</span>
    </button>
  )
}
