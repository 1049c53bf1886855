import { useSignal, useSignalEffect } from '@preact/signals'
import { useRef } from 'preact/hooks'
import { Camera } from './camera.tsx'
import { image } from './live.ts'

/** The first image among what was dropped or pasted. */
export const imageOf = (data: DataTransfer | null): File | undefined =>
  [...(data?.files ?? [])].find((file) => file.type.startsWith('image/'))

function take(picture: Blob | undefined): void {
  image.value = picture
}

/** The image of the request: dropped, pasted, from a file or from the camera. */
export function ImageInput() {
  const picker = useRef<HTMLInputElement>(null)
  const camera = useSignal(false)
  const url = useSignal<string | undefined>(undefined)
  useSignalEffect(() => {
    const shown = image.value && URL.createObjectURL(image.value)
    url.value = shown
    return () => shown && URL.revokeObjectURL(shown)
  })
  return (
    <div class="image-input">
      {url.value && (
        <figure>
          <img src={url.value} alt="What the questions are about" />
          <button type="button" class="quiet" onClick={() => take(undefined)}>
            Remove image
          </button>
        </figure>
      )}
      <p class="row">
        <button type="button" class="quiet" onClick={() => picker.current!.click()}>
          {url.value ? 'Another image' : 'Add an image'}
        </button>
        {'mediaDevices' in navigator && (
          <button type="button" class="quiet" onClick={() => (camera.value = true)}>
            Camera
          </button>
        )}
        <small class="hint">or drop or paste one</small>
      </p>
      <input
        ref={picker}
        hidden
        type="file"
        accept="image/*"
        aria-label="Image file"
        onChange={({ currentTarget }) => {
          take(currentTarget.files?.[0])
          currentTarget.value = ''
        }}
      />
      {camera.value && <Camera onShot={take} onClose={() => (camera.value = false)} />}
    </div>
  )
}
