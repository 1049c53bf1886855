import { languages } from '../../src/index.ts'
import { Figure } from '../decide/decide.tsx'
import { inUse, loading } from '../state.ts'
import { seconds } from '../ui/format.ts'
import { Slider } from '../ui/slider.tsx'
import { TransferBar } from '../ui/transfer.tsx'
import {
  chunks,
  defaultEmotion,
  defaults,
  download,
  type Emotion,
  emotions,
  playOrPause,
  position,
  type Settings,
  say,
  settings,
  state,
  stop,
  words,
} from './speech.ts'
import { Waveform } from './waveform.tsx'

const set = (change: Partial<Settings>): void => {
  settings.value = { ...settings.value, ...change }
}

export function Speak() {
  const speaking = state.value.is === 'speaking'
  return (
    <div class="columns">
      <div class="stack">
        <section class="panel">
          <h2>
            <label for="words">Text</label>
          </h2>
          <textarea
            id="words"
            rows={5}
            value={words.value}
            placeholder="What is to be said; /təmˈɑːtoʊ/ between slashes is said as it stands"
            onInput={({ currentTarget }) => (words.value = currentTarget.value)}
          />
          <p class="row">
            <button type="button" class="primary" disabled={words.value.trim() === ''} onClick={() => say(words.value)}>
              {speaking ? 'Start over' : 'Speak'}
            </button>
            <button type="button" disabled={!speaking && !position.value.playing} onClick={stop}>
              Stop
            </button>
          </p>
        </section>
        <Sound />
      </div>
      <Controls />
    </div>
  )
}

function Sound() {
  const { value } = state
  const transfer = loading.value.voice
  const there = chunks.value.length > 0
  return (
    <section class="panel" aria-label="Sound">
      <Waveform />
      {transfer && <TransferBar loading={transfer} />}
      <p class="row wrap">
        <button type="button" disabled={!there} onClick={playOrPause}>
          {position.value.playing ? 'Pause' : 'Play'}
        </button>
        <button type="button" class="quiet" disabled={!there || value.is === 'speaking'} onClick={download}>
          Download WAV
        </button>
      </p>
      <div role="status" class="meta figures">
        {value.is === 'speaking' && !transfer && <span>speaking</span>}
        {value.is === 'done' && (
          <>
            <Figure label="of speech" value={seconds(value.report.seconds)} />
            <Figure label="to the first sound" value={seconds(value.report.firstMs / 1000)} />
            <Figure label="real-time factor" value={(value.report.totalMs / 1000 / value.report.seconds).toFixed(2)} />
          </>
        )}
      </div>
      {value.is === 'done' && (
        <>
          <p class="ipa" lang="und-fonipa">
            /{value.report.phonemes}/
          </p>
          {value.report.warnings.map((warning) => (
            <p key={warning} class="hint">
              {warning}
            </p>
          ))}
        </>
      )}
      {value.is === 'failed' && <p role="alert">{value.error}</p>}
    </section>
  )
}

const displayNames = new Intl.DisplayNames('en', { type: 'language' })

/** espeak-ng's own codes are longer than those that browsers name. */
function languageName(code: string): string {
  const [family, ...more] = code.split('-')
  try {
    return displayNames.of(code) ?? code
  } catch {
    return `${displayNames.of(family!)} (${more.join(' ')})`
  }
}
const named = languages.map((code) => [code, languageName(code)] as const).sort((a, b) => a[1].localeCompare(b[1]))

function Controls() {
  const { language, voice, rate, pitch, cfg, seed, emotion } = settings.value
  const small = inUse.value.voice.title === 'zonos-nano'
  return (
    <section class="panel" aria-labelledby="voice-settings">
      <header class="row">
        <h2 id="voice-settings">Voice</h2>
        <button type="button" class="quiet" onClick={() => set(defaults)}>
          Reset
        </button>
      </header>
      {small && (
        <p class="hint">
          The small voice that comes with the page speaks English with one robotic voice, and hardly hears the settings.
          The full one is one click away, under <a href="#models">Models</a>.
        </p>
      )}
      <label for="language">Language</label>
      <select id="language" value={language} onChange={({ currentTarget }) => set({ language: currentTarget.value })}>
        {named.map(([code, name]) => (
          <option key={code} value={code}>
            {name}
          </option>
        ))}
      </select>
      <div class="pair">
        <NumberField label="Voice" value={voice} onInput={(value) => set({ voice: value })} />
        <NumberField label="Seed" value={seed} onInput={(value) => set({ seed: value })} />
      </div>
      <Slider
        label="Rate"
        value={rate}
        min={5}
        max={35}
        hint="phonemes a second"
        onInput={(value) => set({ rate: value })}
      />
      <Slider
        label="Pitch"
        value={pitch}
        min={0}
        max={200}
        hint="how much it varies"
        onInput={(value) => set({ pitch: value })}
      />
      <Slider
        label="CFG"
        value={cfg}
        min={1}
        max={4}
        step={0.1}
        hint="how far it keeps to all this"
        onInput={(value) => set({ cfg: value })}
      />
      <details>
        <summary>Emotion</summary>
        {emotions.map((name) => (
          <Slider
            key={name}
            label={name}
            {...{ min: 0, max: 1, step: 0.01 }}
            value={(emotion ?? defaultEmotion)[name]}
            onInput={(value) =>
              set({ emotion: { ...(emotion ?? defaultEmotion), [name]: value } as Record<Emotion, number> })
            }
          />
        ))}
      </details>
    </section>
  )
}

const MOST = 2 ** 32 - 1

/** A seed: any other one is as good. */
function NumberField({ label, value, onInput }: { label: string; value: number; onInput: (value: number) => void }) {
  const id = label.toLowerCase()
  return (
    <div>
      <label for={id}>{label}</label>
      <span class="row">
        <input
          {...{ id, value, type: 'number', min: 0, max: MOST }}
          onInput={({ currentTarget: { valueAsNumber } }) => Number.isInteger(valueAsNumber) && onInput(valueAsNumber)}
        />
        <button
          type="button"
          class="icon"
          aria-label={`Another ${label.toLowerCase()}`}
          onClick={() => onInput(Math.floor(Math.random() * 1000))}
        >
          ↻
        </button>
      </span>
    </div>
  )
}
