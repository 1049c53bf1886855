import { parseArgs } from 'node:util'
import { type DeviceChoice, openDevice } from '../src/device/open.ts'
import type { Precision } from '../src/graph/target.ts'
import { armsBench } from './arms.bench.ts'
import type { Bench, BenchOptions } from './bench.ts'
import { profilingWhatRan, without } from './devices.ts'
import { kernels } from './kernels.bench.ts'
import { save, table } from './measure.ts'
import { prefill } from './prefill.bench.ts'
import { prefix } from './prefix.bench.ts'
import { questions } from './questions.bench.ts'
import { tts } from './tts.bench.ts'
import { vision } from './vision.bench.ts'

const benches: Readonly<Record<string, Bench>> = { prefill, kernels, arms: armsBench, prefix, questions, tts, vision }

const help = `usage: npm run bench -- NAME [options]      NAME: ${Object.keys(benches).join(', ')}

  --device webgpu|cuda|metal|cpu   default webgpu
  --precision auto|f32
  --built-in                       goes by the built-in plans, whatever \`npm run tune\` has kept
  --out FILE           writes the result as JSON
  --software           lets a software adapter pass; its times say nothing about GPUs
  --without A,B        features to do without: shader-f16, subgroups, chromium-experimental-subgroup-matrix
  --disable A,B        variants to do without, by kernel name
  --shape A,B          tiny, 0.8B, 2B; default 0.8B,2B (prefill, kernels, vision); tts knows tiny alone
  --limit TOKENS       skips what is longer (prefill, kernels, questions), images of more patches (vision)
  --run-tokens A,B     most tokens of a request's first run, the second and so on; default one run (prefill)
  --heights A,B        rows of the products; default 64,256,1024 (kernels)
  --sweep linear       every plan that fits a product; --plan TEXT: whose name begins so (kernels)
  --baseline FILE      of torch_baseline.py on this machine, for shares of cuBLAS and ratios (kernels, tts)
  --minutes N          speaks a text of so many minutes too (tts)
  --peak-tflops N      of the machine's f32 arithmetic, for shares of a bound (kernels)
  --model WHERE        a checkpoint (arms, prefix, questions); --revision NAME: which one it is
  --warmups N --runs N default 3 and 15
`

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    device: { type: 'string', default: 'webgpu' },
    precision: { type: 'string', default: 'auto' },
    'built-in': { type: 'boolean', default: false },
    out: { type: 'string' },
    software: { type: 'boolean', default: false },
    without: { type: 'string', default: '' },
    disable: { type: 'string', default: '' },
    shape: { type: 'string', default: '0.8B,2B' },
    limit: { type: 'string', default: '8192' },
    'run-tokens': { type: 'string' },
    heights: { type: 'string', default: '64,256,1024' },
    sweep: { type: 'string' },
    plan: { type: 'string', default: '' },
    baseline: { type: 'string' },
    minutes: { type: 'string', default: '0' },
    'peak-tflops': { type: 'string' },
    model: { type: 'string', default: 'public/models/decider-nano' },
    revision: { type: 'string' },
    warmups: { type: 'string', default: '3' },
    runs: { type: 'string', default: '15' },
    help: { type: 'boolean', default: false },
  },
})

const list = (text: string): string[] => text.split(',').filter(Boolean)
const note = (line: string) => void process.stderr.write(`${line}\n`)

const options: BenchOptions = {
  limit: Number(values.limit),
  shapes: list(values.shape) as BenchOptions['shapes'],
  model: values.model,
  revision: values.revision,
  runTokens: values['run-tokens'] === undefined ? undefined : list(values['run-tokens']).map(Number),
  heights: list(values.heights).map(Number),
  sweep: values.sweep,
  plan: values.plan,
  baseline: values.baseline,
  minutes: Number(values.minutes),
  peakTflops: values['peak-tflops'] === undefined ? undefined : Number(values['peak-tflops']),
  warmups: Number(values.warmups),
  runs: Number(values.runs),
}

const [name] = positionals
const bench = benches[name ?? '']
if (values.help || !bench) {
  process.stdout.write(help)
  process.exitCode = values.help ? 0 : 2
} else {
  const opened = await openDevice(values.device as DeviceChoice, {
    precision: values.precision as Precision,
    tuning: values['built-in'] ? 'built-in' : 'kept',
  })
  try {
    note(`device: ${opened.report.line}`)
    if (opened.report.software && !values.software)
      throw new Error('bench: the adapter is software, expected a GPU; pass --software to run all the same')
    const device = profilingWhatRan(without(opened, list(values.without), list(values.disable)))
    const result = await bench(device, options, note)
    process.stdout.write(`${table(result.rows)}\n`)
    if (values.out) save(values.out, result)
  } finally {
    await opened.dispose()
  }
}
