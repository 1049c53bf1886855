import type { Loading } from '../state.ts'
import { bytes, duration } from './format.ts'

/** How far a model is, with its rate and the time that is left. */
export function TransferBar({ loading, onCancel }: { loading: Loading; onCancel?: () => void }) {
  const { transfer, bytesPerSecond, ref } = loading
  const left =
    transfer && bytesPerSecond > 0 ? (transfer.totalBytes - transfer.loadedBytes) / bytesPerSecond : undefined
  return (
    <div class="transfer">
      <progress
        aria-label={`Loading ${ref.title}`}
        max={1}
        value={transfer && transfer.loadedBytes / transfer.totalBytes}
      />
      <p class="meta">
        {transfer ? (
          <>
            <span>{transfer.what}</span>
            <span>
              {bytes(transfer.loadedBytes)} of {bytes(transfer.totalBytes)}
            </span>
            {bytesPerSecond > 0 && <span>{bytes(bytesPerSecond)}/s</span>}
            {left !== undefined && <span>{duration(left)} left</span>}
          </>
        ) : (
          <span>asking for {ref.title}</span>
        )}
      </p>
      {onCancel && (
        <button type="button" class="quiet" onClick={onCancel}>
          Cancel
        </button>
      )}
    </div>
  )
}
