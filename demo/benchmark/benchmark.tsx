import { signal } from '@preact/signals'
import { call, callback, engine, isAbort, messageOf } from '../client.ts'
import { arms } from '../engine/arms.ts'
import type { BenchmarkResult, BenchmarkRow } from '../engine/benchmark.ts'
import { device, inUse } from '../state.ts'
import { count, ms } from '../ui/format.ts'
import { save } from '../ui/save.ts'
import { Chart } from './chart.tsx'

const WARMUPS = 1
const TOP_KERNELS = 6

const runs = signal(9)
const step = signal('')
const error = signal('')
const result = signal<BenchmarkResult | undefined>(undefined)
let running = new AbortController()

function setRuns(n: number): void {
  if (n >= 1) runs.value = Math.floor(n)
}

async function run(): Promise<void> {
  running = new AbortController()
  const { signal } = running
  error.value = ''
  step.value = 'starting'
  result.value = undefined
  const onStep = callback((text: string) => {
    if (!signal.aborted) step.value = text
  })
  try {
    const options = { warmups: WARMUPS, runs: runs.value }
    result.value = await call(signal, (id) => engine.benchmark(id, options, onStep))
  } catch (cause) {
    if (!isAbort(cause)) error.value = messageOf(cause)
  } finally {
    step.value = ''
  }
}

export function Benchmark() {
  return (
    <div class="stack">
      <section class="panel" aria-labelledby="bench">
        <h2 id="bench">The same requests through three sets of kernels</h2>
        <p>
          <b>reference</b> runs the delta rule token by token, <b>conv</b> fuses its convolution, <b>optimized</b> takes
          chunks of tokens at once. They take turns, on {device.value?.name ?? 'the device'}, with{' '}
          {inUse.value.decider.title}.
        </p>
        <p class="row wrap">
          <label for="runs">Rounds</label>
          <input
            id="runs"
            type="number"
            min={1}
            max={99}
            value={runs.value}
            onInput={({ currentTarget }) => setRuns(currentTarget.valueAsNumber)}
          />
          <button type="button" class="primary" disabled={step.value !== ''} onClick={run}>
            Run
          </button>
          <button
            type="button"
            disabled={step.value === ''}
            onClick={() => running.abort(new DOMException('stopped', 'AbortError'))}
          >
            Stop
          </button>
          {result.value && (
            <button type="button" class="quiet" onClick={() => download(result.value!)}>
              Download JSON
            </button>
          )}
          <span role="status" class="meta">
            {step.value}
          </span>
        </p>
        {device.value?.software && (
          <p class="hint">This device computes in software: its times say nothing about GPUs.</p>
        )}
        {error.value && <p role="alert">{error.value}</p>}
      </section>
      {result.value && <Result result={result.value} />}
    </div>
  )
}

const download = (result: BenchmarkResult): void =>
  save(
    new Blob([`${JSON.stringify(result, undefined, 1)}\n`], { type: 'application/json' }),
    'pronounce_benchmark.json',
  )

function Result({ result: { rows, largestDifference } }: { result: BenchmarkResult }) {
  const requests = rows.filter(({ part }) => part === 'request')
  const kernels = rows.filter(({ part }) => part === 'kernel')
  const top = Object.keys(arms).flatMap((arm) =>
    kernels
      .filter((row) => row.arm === arm)
      .sort((a, b) => b.medianMs - a.medianMs)
      .slice(0, TOP_KERNELS),
  )
  return (
    <>
      <section class="panel" aria-label="Requests">
        <Chart title="A request from beginning to end, warm" rows={requests} />
        <Table label="Requests" rows={requests} />
        <p class="hint">
          Cold is the first run, with what had to be compiled. The arms' probabilities differ by at most{' '}
          {largestDifference.toExponential(1)}.
        </p>
      </section>
      <section class="panel" aria-label="Kernels">
        {top.length > 0 ? (
          <>
            <Chart title="Kernels of the long request, the slowest of each arm" rows={top} />
            <details>
              <summary>All kernels</summary>
              <Table label="Kernels" rows={kernels} />
            </details>
          </>
        ) : (
          <p class="hint">This GPU tells no times of single kernels.</p>
        )}
      </section>
    </>
  )
}

function Table({ label, rows }: { label: string; rows: readonly BenchmarkRow[] }) {
  const cold = rows.some(({ coldMs }) => coldMs !== undefined)
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard has to reach it
    <section class="scroll" tabIndex={0} aria-label={`${label}, as a table`}>
      <table>
        <thead>
          <tr>
            <th scope="col">arm</th>
            <th scope="col">{cold ? 'text' : 'kernel'}</th>
            {cold && <th scope="col">cold</th>}
            <th scope="col">median</th>
            <th scope="col">min</th>
            <th scope="col">max</th>
            <th scope="col">dispatches</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={`${row.arm} ${row.case}`}>
              <td>{row.arm}</td>
              <td>{row.case}</td>
              {cold && <td>{row.coldMs !== undefined && ms(row.coldMs)}</td>}
              <td>{ms(row.medianMs)}</td>
              <td>{ms(row.minMs)}</td>
              <td>{ms(row.maxMs)}</td>
              <td>{count(row.dispatches)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}
