import { useId } from 'preact/hooks'
import type { Answer } from '../../src/index.ts'
import { AnswerBars } from './answer.tsx'
import { add, drafts, edit, json, live, mode, notice, remove, shared, switchMode } from './live.ts'
import { type Draft, typeNames } from './questions.ts'

/** The questions, as a form or as JSON, each with its answer below it. */
export function Questions() {
  const answers: { readonly [name: string]: Answer } =
    live.value.state === 'answered' ? live.value.decision.answers : {}
  return (
    <section class="panel" aria-labelledby="questions" aria-busy={live.value.state === 'waiting'}>
      <header class="row">
        <h2 id="questions">Questions</h2>
        <fieldset class="switch">
          <legend class="hidden">Edit as</legend>
          {(['form', 'json'] as const).map((each) => (
            <label key={each}>
              <input type="radio" name="mode" checked={mode.value === each} onChange={() => switchMode(each)} />
              {each === 'form' ? 'Form' : 'JSON'}
            </label>
          ))}
        </fieldset>
      </header>
      {notice.value && <p role="status">{notice.value}</p>}
      {mode.value === 'form' ? (
        <>
          {drafts.value.map((draft) => (
            <QuestionCard key={draft.id} draft={draft} answer={answers[draft.name]} />
          ))}
          <button type="button" class="quiet" onClick={add}>
            Add a question
          </button>
        </>
      ) : (
        <JsonQuestions answers={answers} />
      )}
    </section>
  )
}

function QuestionCard({ draft, answer }: { draft: Draft; answer: Answer | undefined }) {
  const { id, name, type, question, options } = draft
  const base = useId()
  return (
    <article class="card question" aria-label={question}>
      <div class="row">
        <label class="hidden" for={`${base}-name`}>
          Name
        </label>
        <input
          id={`${base}-name`}
          class="name"
          value={name}
          spellcheck={false}
          onInput={({ currentTarget }) => edit(id, { name: currentTarget.value })}
        />
        <label class="hidden" for={`${base}-type`}>
          Answer
        </label>
        <select
          id={`${base}-type`}
          value={type}
          onChange={({ currentTarget }) => edit(id, { type: currentTarget.value as Draft['type'] })}
        >
          {Object.entries(typeNames).map(([value, label]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
        <button type="button" class="icon" aria-label={`Remove ${name}`} onClick={() => remove(id)}>
          ×
        </button>
      </div>
      <label class="hidden" for={`${base}-question`}>
        Question
      </label>
      <textarea
        id={`${base}-question`}
        class="line strong"
        rows={1}
        value={question}
        onInput={({ currentTarget }) => edit(id, { question: currentTarget.value })}
      />
      {type !== 'noul' && (
        <>
          <label class="hidden" for={`${base}-options`}>
            {type === 'choice'
              ? 'Options, with commas between them'
              : 'Levels from the lowest, with commas between them'}
          </label>
          <textarea
            id={`${base}-options`}
            class="line"
            rows={1}
            value={options}
            placeholder={type === 'choice' ? 'billing, technical, sales' : 'low, middle, high'}
            onInput={({ currentTarget }) => edit(id, { options: currentTarget.value })}
          />
        </>
      )}
      <AnswerBars label={question} answer={answer} />
    </article>
  )
}

function JsonQuestions({ answers }: { answers: { readonly [name: string]: Answer } }) {
  const questions = shared.value.questions as { readonly [name: string]: { readonly instructions?: unknown } }
  return (
    <>
      <label class="hidden" for="json">
        Questions as JSON
      </label>
      <textarea
        id="json"
        class="code"
        rows={14}
        spellcheck={false}
        value={json.value}
        onInput={({ currentTarget }) => (json.value = currentTarget.value)}
      />
      {Object.entries(answers).map(([name, answer]) => {
        const label = String(questions[name]?.instructions ?? name)
        return (
          <article key={name} class="card question" aria-label={label}>
            <h3>{label}</h3>
            <AnswerBars label={label} answer={answer} />
          </article>
        )
      })}
    </>
  )
}
