import { useId } from 'preact/hooks'

interface SliderProps {
  readonly label: string
  readonly value: number
  readonly min: number
  readonly max: number
  readonly step?: number
  readonly hint?: string
  readonly onInput: (value: number) => void
}

export function Slider({ label, value, min, max, step = 1, hint, onInput }: SliderProps) {
  const id = useId()
  return (
    <div class="slider">
      <label for={id}>{label}</label>
      <output class="number" for={id}>
        {value}
      </output>
      <input
        id={id}
        type="range"
        aria-describedby={hint ? `${id}-hint` : undefined}
        {...{ min, max, step, value }}
        onInput={(event) => onInput(event.currentTarget.valueAsNumber)}
      />
      {hint && (
        <small id={`${id}-hint`} class="hint">
          {hint}
        </small>
      )}
    </div>
  )
}
