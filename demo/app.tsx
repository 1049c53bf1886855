import { Badge } from './badge.tsx'
import { Benchmark } from './benchmark/benchmark.tsx'
import { Decide } from './decide/decide.tsx'
import { Models } from './models/models.tsx'
import { Speak } from './speak/speak.tsx'
import { choice, device, deviceError, hasWebgpu, view, views } from './state.ts'

const pages = { decide: Decide, speak: Speak, models: Models, benchmark: Benchmark }

export function App() {
  const Page = pages[view.value]
  return (
    <>
      <a class="skip" href="#main">
        To the content
      </a>
      <header class="top">
        <a class="wordmark" href="#decide">
          pronounce
          <small lang="und-fonipa" aria-hidden="true">
            /pɹəˈnaʊns/
          </small>
        </a>
        <nav aria-label="Pages">
          {views.map((name) => (
            <a key={name} href={`#${name}`} aria-current={view.value === name ? 'page' : undefined}>
              {name}
            </a>
          ))}
        </nav>
        <Badge />
      </header>
      <Notice />
      <main id="main" tabIndex={-1}>
        <h1 class="hidden">pronounce: {view.value}</h1>
        <Page />
      </main>
      <footer>
        Models run in this tab; nothing you write leaves it. Words are read aloud by way of espeak-ng, which is free
        software under the GPL 3.
      </footer>
    </>
  )
}

/** Where there is no GPU to use, the page says so and goes on. */
function Notice() {
  if (deviceError.value) {
    return (
      <p class="notice" role="alert">
        {deviceError.value}
      </p>
    )
  }
  if (device.value?.kind !== 'cpu' || choice.value !== 'auto') return null
  return (
    <p class="notice" role="status">
      {hasWebgpu
        ? `Everything runs on the CPU (${device.value.why}).`
        : 'This browser has no WebGPU, so everything runs on the CPU.'}{' '}
      Answers are the same, only slower.
      {!hasWebgpu && ' Chrome, Edge, Safari from 26 on and Firefox on Windows have WebGPU.'}
    </p>
  )
}
