import { readFileSync } from 'node:fs'
import { afterAll, expect } from 'vitest'
import type { Decider } from '../../../src/apps/decider/api.ts'
import { type DeciderConfig, parseConfig } from '../../../src/apps/decider/config.ts'
import { createDecider } from '../../../src/apps/decider/decider.ts'
import { createEyes, type Eyes } from '../../../src/apps/decider/images.ts'
import type { Row, Scorer } from '../../../src/apps/decider/scorer.ts'
import { loadDecider } from '../../../src/apps/decider/load.ts'
import { cpuDevice } from '../../../src/device/cpu.ts'
import type { Device } from '../../../src/device/device.ts'
import { openDevice } from '../../../src/device/open.ts'
import { visionConfig } from '../../../src/models/qwen3_5/config.ts'
import { processorConfig } from '../../../src/models/qwen3_5/processor.ts'
import { createTokenizer } from '../../../src/text/tokenizer.ts'

/** A file of the repository, from its root. */
export const readText = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8')
export const readJson = (path: string) => JSON.parse(readText(path))

const MODEL = 'public/models/decider-nano'
export const tokenizer = createTokenizer(readJson(`${MODEL}/tokenizer.json`))
export const nanoConfig = parseConfig(readText(`${MODEL}/decider_config.json`))

/** What turns images into rows of the nano model. */
export const nanoEyes = (): Eyes => {
  const config = visionConfig(readJson(`${MODEL}/config.json`))!
  const processor = processorConfig(readJson(`${MODEL}/preprocessor_config.json`))
  return createEyes(tokenizer, { config, processor }, 4096)
}

interface GoldenItem {
  readonly name: string
  readonly context: string
  readonly questions: readonly { readonly question: string; readonly options: readonly string[] }[]
  readonly ids: readonly number[]
  readonly slots: readonly number[]
  readonly logits: readonly (readonly number[])[]
  readonly probs: readonly (readonly number[])[]
}

interface GoldenImage extends GoldenItem {
  readonly image: string
  readonly grid_thw: readonly number[]
  readonly pixel_values_sha256: string
}
const golden = readJson('tests/fixtures/decider-nano/golden.json')
/** Requests to the nano model that PyTorch answered, those without an image. */
export const goldenText: readonly GoldenItem[] = golden.items.filter(
  ({ name }: GoldenItem) => !name.startsWith('image_'),
)
/** Those about an image. */
export const goldenImages: readonly GoldenImage[] = golden.items.filter(({ name }: GoldenItem) =>
  name.startsWith('image_'),
)
export const goldenLabels: readonly number[] = golden.label_ids

/** A row that the original made with the tokenizer of Qwen3.5. */
export interface PromptCase {
  readonly name: string
  readonly state: string
  readonly question: string
  readonly options: string[]
  readonly ids: number[]
  readonly slots: number[]
  readonly context_tokens: number
  readonly usage_input_tokens: number
}
export const referenceCases = readJson('tests/fixtures/decider/reference.json')

export interface Call {
  readonly rows: readonly Row[]
  readonly signal: AbortSignal | undefined
}

/** A decider of the nano model's tokenizer whose logits come from `logitsOf`, and the calls it made. */
export function fakeDecider(
  logitsOf: (row: Row, slot: number, index: number) => readonly number[],
  { config = {}, maxTokens, eyes }: { config?: Partial<DeciderConfig>; maxTokens?: number; eyes?: Eyes } = {},
): { decider: Decider; calls: Call[]; disposals: () => number } {
  const calls: Call[] = []
  let disposals = 0
  const scorer: Scorer = {
    score: async (rows, options) => {
      calls.push({ rows, signal: options?.signal })
      return rows.map((row, index) => row.slots.map((_, slot) => Float32Array.from(logitsOf(row, slot, index))))
    },
  }
  const decider = createDecider({
    tokenizer,
    config: { ...nanoConfig, ...config },
    scorer,
    ...(maxTokens !== undefined && { maxTokens }),
    ...(eyes && { eyes }),
    dispose: () => {
      disposals++
    },
  })
  return { decider, calls, disposals: () => disposals }
}

/** Logits whose softmax at temperature 1 is p; the labels beyond it are unlikely. */
export const logitsFor = (p: readonly number[], labels = 99): number[] =>
  Array.from({ length: labels }, (_, i) => (i < p.length ? Math.log(p[i]!) : 50))

export const uncalibrated = { base: 1, byType: {} }

/** Made-up probabilities of yes, one pair for each row of a request. */
export const rowProbabilities = [
  [0.2, 0.8],
  [0.9, 0.1],
  [0.5, 0.5],
  [0.6, 0.4],
  [0.05, 0.95],
]

/** Where the nano model is compared with PyTorch, and how far apart probabilities may be there. */
export const nanoDevices = [
  ['cpu', async () => cpuDevice('test'), 1e-4],
  ['webgpu, f32', () => openDevice('webgpu', { precision: 'f32' }), 1e-4],
  ['webgpu, f16', () => openDevice('webgpu'), 2e-3],
] as const

/** Loads the nano model for the tests of a group; after them nothing of it is left on the device. */
export function nanoOn(open: () => Promise<Device>): Promise<Decider> {
  const opened = open()
  const loaded = opened.then((device) => loadDecider(MODEL, { device }))
  afterAll(async () => {
    await (await loaded).dispose()
    const device = await opened
    expect(device.memory.keptBytes).toBe(0)
    await device.dispose()
  })
  return loaded
}
