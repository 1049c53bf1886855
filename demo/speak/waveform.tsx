import { useSignalEffect } from '@preact/signals'
import { useRef } from 'preact/hooks'
import { seconds } from '../ui/format.ts'
import { peaks } from './peaks.ts'
import { chunks, length, position, SAMPLE_RATE, seek } from './speech.ts'

const BAR = 3 // pixels, with its gap
const HEIGHT = 96
const STEP = SAMPLE_RATE / 10 // of the keys

/** What was said so far, with a place to begin hearing it from. */
export function Waveform() {
  const canvas = useRef<HTMLCanvasElement>(null)
  const drawn = useRef<{ of: readonly Float32Array[]; bars: Float32Array }>({ of: [], bars: new Float32Array(0) })
  useSignalEffect(() => {
    const { width } = canvas.current!.getBoundingClientRect()
    const bars = Math.max(1, Math.floor(width / BAR))
    const { value: parts } = chunks
    if (drawn.current.of !== parts || drawn.current.bars.length !== bars)
      drawn.current = { of: parts, bars: peaks(parts, bars) }
    draw(canvas.current!, drawn.current.bars, position.value.sample / Math.max(1, length()))
  })
  const total = length()
  return (
    <div class="waveform">
      <canvas ref={canvas} />
      <input
        type="range"
        aria-label="Position"
        aria-valuetext={`${seconds(position.value.sample / SAMPLE_RATE)} of ${seconds(total / SAMPLE_RATE)}`}
        min={0}
        max={Math.ceil(total / STEP) * STEP}
        step={STEP}
        disabled={total === 0}
        value={position.value.sample}
        onInput={({ currentTarget }) => seek(Math.round(currentTarget.valueAsNumber))}
      />
    </div>
  )
}

function draw(canvas: HTMLCanvasElement, bars: Float32Array, played: number): void {
  const scale = devicePixelRatio
  const width = canvas.clientWidth
  canvas.width = width * scale
  canvas.height = HEIGHT * scale
  const context = canvas.getContext('2d')!
  context.scale(scale, scale)
  const { color, accentColor } = getComputedStyle(canvas)
  const loudest = Math.max(0.05, ...bars)
  for (const [i, peak] of bars.entries()) {
    context.fillStyle = i / bars.length < played ? accentColor : color
    const height = Math.max(2, (peak / loudest) * (HEIGHT - 8))
    context.beginPath()
    context.roundRect(i * BAR, (HEIGHT - height) / 2, BAR - 1, height, 1)
    context.fill()
  }
}
