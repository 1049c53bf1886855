import { signal, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { embedded, engine, messageOf } from '../client.ts'
import type { CachedModel, KnownModel } from '../engine/sources.ts'
import type { ModelRef } from '../engine/models.ts'
import { forgetOffline, keepOffline, offlineBytes } from '../offline.ts'
import { cancelLoad, device, inUse, loadErrors, loading, use } from '../state.ts'
import { useDrop } from '../ui/drop.ts'
import { bytes } from '../ui/format.ts'
import { TransferBar } from '../ui/transfer.tsx'
import { filesOf, modelsOf, picked } from './files.ts'

const stored = signal<{ readonly known: readonly KnownModel[]; readonly cached: readonly CachedModel[] }>({
  known: [],
  cached: [],
})
/** Bytes of the models that come with the page. */
const sizes = signal<{ readonly [kind in ModelRef['kind']]?: number }>({})

async function measure(): Promise<void> {
  const length = async (folder: string): Promise<number> =>
    Number((await fetch(`${folder}model.safetensors`, { method: 'HEAD' })).headers.get('content-length'))
  const { decider, voice } = embedded
  const [small, speech, codec] = await Promise.all([decider.where, voice.where, voice.codec].map(length))
  sizes.value = { decider: small!, voice: speech! + codec! }
}

const refresh = async (): Promise<void> => {
  stored.value = await engine.stored()
}

const CODEC = 'hf:descript/dac_44khz'

export function Models() {
  const over = useDrop((data) => take(filesOf(data)))
  const error = useSignal('')
  const dropped = useSignal<readonly ModelRef[]>([])
  const picker = useRef<HTMLInputElement>(null)
  useEffect(() => {
    refresh()
    measure()
  }, [])

  async function take(files: ReturnType<typeof picked> | Promise<ReturnType<typeof picked>>): Promise<void> {
    error.value = ''
    try {
      dropped.value = await modelsOf(await files)
      for (const ref of dropped.value) await use(ref)
    } catch (cause) {
      error.value = messageOf(cause)
    }
  }
  const { known, cached } = stored.value
  const codec = known.find(({ name }) => name === CODEC)
  const published = known.filter(({ name }) => name !== CODEC)
  return (
    <div class="stack">
      <section aria-labelledby="embedded">
        <h2 id="embedded">With the page</h2>
        <p class="hint">There at once, and without a network too. Small models for trying things out.</p>
        <div class="grid">
          {Object.values(embedded).map((ref) => (
            <ModelCard
              key={ref.title}
              model={ref}
              size={sizes.value[ref.kind]}
              memory={sizes.value[ref.kind]}
              source="this page"
            />
          ))}
        </div>
        <Offline />
      </section>
      <section aria-labelledby="published">
        <h2 id="published">Published</h2>
        <p class="hint">Nothing is downloaded before you press a button here.</p>
        <div class="grid">
          {published.map(({ name, bytes: size, deviceBytes }) => {
            const voice = /zonos/i.test(name)
            const ref: ModelRef = {
              ...{ kind: voice ? 'voice' : 'decider', title: name.replace(/^hf:/, ''), where: name },
              ...(voice && { codec: CODEC }),
            }
            const more = voice && codec ? codec : { bytes: 0, deviceBytes: 0 }
            return (
              <ModelCard
                key={name}
                model={ref}
                size={size + more.bytes}
                memory={deviceBytes + more.deviceBytes}
                source="huggingface.co"
                cached={cached.filter((each) =>
                  [name, voice && CODEC].some((wanted) => wanted && each.name.startsWith(`${wanted}@`)),
                )}
              />
            )
          })}
        </div>
        <Elsewhere />
      </section>
      <section class={over.value ? 'panel drop over' : 'panel drop'} aria-labelledby="yours">
        <h2 id="yours">From your disk</h2>
        <p>
          Drop a folder with config.json, model.safetensors and tokenizer.json here. It is read where it lies and sent
          nowhere.
        </p>
        <p class="row">
          <button type="button" onClick={() => picker.current!.click()}>
            Choose a folder
          </button>
        </p>
        <input
          ref={picker}
          hidden
          type="file"
          aria-label="Folder of a model"
          {...{ webkitdirectory: true }}
          onChange={({ currentTarget }) => currentTarget.files && take(picked(currentTarget.files))}
        />
        {error.value && <p role="alert">{error.value}</p>}
        {dropped.value.length > 0 && (
          <div class="grid">
            {dropped.value.map((ref) => (
              <ModelCard key={ref.title} model={ref} size={sizeOf(ref)} memory={sizeOf(ref)} source="your disk" />
            ))}
          </div>
        )}
      </section>
    </div>
  )
}

const sizeOf = ({ where }: ModelRef): number =>
  typeof where === 'string' ? 0 : Object.values(where).reduce((n, file) => n + file.size, 0)

interface CardProps {
  readonly model: ModelRef
  readonly size: number | undefined
  readonly memory: number | undefined
  readonly source: string
  readonly cached?: readonly CachedModel[]
}

function ModelCard({ model, size, memory, source, cached = [] }: CardProps) {
  const { kind, title } = model
  const used = inUse.value[kind].title === title
  const mine = loading.value[kind]?.ref.title === title ? loading.value[kind] : undefined
  const error = loadErrors.value[title]
  const kept = cached.reduce((n, each) => n + each.bytes, 0)
  return (
    <article class={used ? 'card model used' : 'card model'} aria-label={title}>
      <h3>{title}</h3>
      <p class="meta">
        <span>{kind === 'voice' ? 'speaks' : 'decides'}</span>
        <span>{source}</span>
      </p>
      <dl>
        <Entry name="Download" value={size && bytes(size)} />
        <Entry name="On a GPU" value={memory && bytes(memory)} />
        <Entry name="Computed in" value={device.value?.dtype} />
        <Entry
          name="Cached"
          value={kept && `${bytes(kept)}${cached.every((each) => each.complete) ? '' : ', in part'}`}
        />
      </dl>
      {mine ? (
        <TransferBar loading={mine} onCancel={() => cancelLoad(kind)} />
      ) : (
        <p class="row">
          <button type="button" disabled={used} onClick={() => use(model).then(refresh)}>
            {used ? 'In use' : kept || source !== 'huggingface.co' ? 'Use' : 'Download and use'}
          </button>
          {kept > 0 && (
            <button type="button" class="quiet" disabled={used} onClick={() => removeAll(cached)}>
              Delete
            </button>
          )}
        </p>
      )}
      {error && <p role="alert">{error}</p>}
    </article>
  )
}

const Entry = ({ name, value }: { name: string; value: string | number | undefined }) =>
  value ? (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  ) : null

async function removeAll(cached: readonly CachedModel[]): Promise<void> {
  for (const { name } of cached) await engine.remove(name)
  await refresh()
}

/** A model of any other name or address. */
function Elsewhere() {
  const ref = useSignal<ModelRef | undefined>(undefined)
  return (
    <>
      <form
        class="row wrap"
        onSubmit={(event) => {
          event.preventDefault()
          const where = String(new FormData(event.currentTarget).get('where')).trim()
          ref.value = { kind: 'decider', title: where, where }
          use(ref.value).then(refresh)
        }}
      >
        <label for="where">Another Decider</label>
        <input
          id="where"
          class="address"
          name="where"
          required
          placeholder="hf:owner/name@revision or https://…"
          spellcheck={false}
        />
        <button type="submit">Download and use</button>
      </form>
      {ref.value && (
        <div class="grid">
          <ModelCard
            model={ref.value}
            size={undefined}
            memory={undefined}
            source={String(ref.value.where)}
            cached={stored.value.cached.filter(({ name }) =>
              name.startsWith(String(ref.value!.where).replace(/\/$/, '')),
            )}
          />
        </div>
      )}
    </>
  )
}

/** What the page keeps of itself for the times without a network. */
function Offline() {
  const kept = useSignal<number | undefined>(undefined)
  const look = async (): Promise<void> => {
    kept.value = await offlineBytes()
  }
  useEffect(() => void look(), [])
  if (!kept.value) return null
  return (
    <p class="row wrap">
      <small class="hint">{bytes(kept.value)} of this page and its models are kept for use without a network.</small>
      <button type="button" class="quiet" onClick={() => forgetOffline().then(look)}>
        Delete offline copy
      </button>
      <button type="button" class="quiet" onClick={() => keepOffline().then(look)}>
        Keep all of it
      </button>
    </p>
  )
}
