import { type ReadonlySignal, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

/** Hears of what is dropped anywhere on the page while the component is there; true while something is held over it. */
export function useDrop(onDrop: (data: DataTransfer) => void): ReadonlySignal<boolean> {
  const over = useSignal(false)
  useEffect(() => {
    const listeners = new AbortController()
    const { signal } = listeners
    const enter = (event: DragEvent): void => {
      event.preventDefault()
      over.value = true
    }
    const leave = ({ relatedTarget }: DragEvent): void => {
      if (relatedTarget === null) over.value = false // left the window
    }
    const drop = (event: DragEvent): void => {
      event.preventDefault()
      over.value = false
      if (event.dataTransfer) onDrop(event.dataTransfer)
    }
    addEventListener('dragover', enter, { signal })
    addEventListener('dragleave', leave, { signal })
    addEventListener('drop', drop, { signal })
    return () => listeners.abort()
  }, [])
  return over
}
