import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { messageOf } from '../client.ts'

/** A picture of the camera, which is on only while this is open. */
export function Camera({ onShot, onClose }: { onShot: (shot: Blob) => void; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null)
  const video = useRef<HTMLVideoElement>(null)
  const error = useSignal('')
  useEffect(() => {
    dialog.current!.showModal()
    const opening = navigator.mediaDevices.getUserMedia({ video: { facingMode: 'environment' } })
    opening.then(
      (stream) => {
        if (video.current) video.current.srcObject = stream
      },
      (cause) => {
        error.value = `There is no picture: ${messageOf(cause)}`
      },
    )
    const off = (stream: MediaStream): void => stream.getTracks().forEach((track) => track.stop())
    return () => void opening.then(off, () => {})
  }, [])

  async function shoot(): Promise<void> {
    const { videoWidth, videoHeight } = video.current!
    const canvas = new OffscreenCanvas(videoWidth, videoHeight)
    canvas.getContext('2d')!.drawImage(video.current!, 0, 0)
    onShot(await canvas.convertToBlob())
    onClose()
  }
  return (
    <dialog ref={dialog} class="camera" aria-label="Camera" onClose={onClose}>
      {error.value ? <p role="alert">{error.value}</p> : <video ref={video} autoplay playsInline muted />}
      <p class="row">
        <button type="button" disabled={error.value !== ''} onClick={shoot}>
          Take the picture
        </button>
        <button type="button" class="quiet" onClick={onClose}>
          Close
        </button>
      </p>
    </dialog>
  )
}
