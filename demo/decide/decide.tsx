import { useEffect } from 'preact/hooks'
import { said, say, state, stop } from '../speak/speech.ts'
import { inUse, loading } from '../state.ts'
import { Copy } from '../ui/copy.tsx'
import { useDrop } from '../ui/drop.ts'
import { count, ms } from '../ui/format.ts'
import { TransferBar } from '../ui/transfer.tsx'
import { curl, typescript } from './code.ts'
import { examples } from './examples.ts'
import { ImageInput, imageOf } from './image_input.tsx'
import { image, live, share, shared, showExample, text } from './live.ts'
import { Questions } from './questions.tsx'
import { sentences } from './sentence.ts'

function takeImage(data: DataTransfer | null): boolean {
  const file = imageOf(data)
  if (file) image.value = file
  return file !== undefined
}

export function Decide() {
  const over = useDrop(takeImage)
  useEffect(() => {
    const paste = (event: ClipboardEvent): void => {
      if (takeImage(event.clipboardData)) event.preventDefault()
    }
    addEventListener('paste', paste)
    return () => removeEventListener('paste', paste)
  }, [])
  return (
    <div class="columns">
      <div class="stack">
        <section class={over.value ? 'panel over' : 'panel'}>
          <h2>
            <label for="text">Text</label>
          </h2>
          <textarea
            id="text"
            rows={6}
            value={text.value}
            placeholder="Write or paste what the questions are about"
            onInput={({ currentTarget }) => (text.value = currentTarget.value)}
          />
          <ImageInput />
        </section>
        <nav class="gallery" aria-label="Examples">
          {examples.map((example) => (
            <button key={example.title} type="button" class="chip" onClick={() => showExample(example)}>
              {example.title}
            </button>
          ))}
        </nav>
        <Outcome />
      </div>
      <Questions />
    </div>
  )
}

/** What the answers cost, what went wrong, and what to do with them. */
function Outcome() {
  const { value } = live
  const transfer = loading.value.decider
  return (
    <section class="outcome" aria-label="Result">
      {transfer && <TransferBar loading={transfer} />}
      <div role="status" class="meta figures">
        {value.state === 'waiting' && !transfer && <span>thinking</span>}
        {value.state === 'empty' && <span>Nothing is asked about an empty text.</span>}
        {value.state === 'answered' && (
          <>
            <Figure label="latency" value={ms(value.ms)} />
            <Figure label="tokens" value={count(value.decision.usage.inputTokens)} />
            <Figure label="dispatches" value={count(value.dispatches)} />
            <Figure label="model" value={value.decision.model} />
            {value.decision.usage.truncatedTokens > 0 && (
              <Figure label="tokens cut from the end" value={count(value.decision.usage.truncatedTokens)} />
            )}
          </>
        )}
      </div>
      {value.state === 'failed' && <p role="alert">{value.error}</p>}
      <p class="row wrap">
        {value.state === 'answered' && <ReadAloud sentence={sentences(shared.value.questions, value.decision)} />}
        <Copy label="Share link" text={share} />
        <Copy label="Copy as curl" text={() => curl(shared.value)} />
        <Copy label="Copy as TypeScript" text={() => typescript(shared.value, inUse.value.decider)} />
      </p>
      {value.state === 'answered' && (
        <details>
          <summary>Raw JSON</summary>
          {/* scrolls, so the keyboard has to reach it */}
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: axe asks for it */}
          <pre id="raw" tabIndex={0}>
            {JSON.stringify(value.decision, undefined, 2)}
          </pre>
        </details>
      )}
    </section>
  )
}

export const Figure = ({ label, value }: { label: string; value: string }) => (
  <span class="figure">
    <b>{value}</b> {label}
  </span>
)

function ReadAloud({ sentence }: { sentence: string }) {
  const speaking = state.value.is === 'speaking' && said.value === sentence
  return (
    <button type="button" onClick={() => (speaking ? stop() : say(sentence))}>
      {speaking ? 'Stop' : 'Read aloud'}
    </button>
  )
}
