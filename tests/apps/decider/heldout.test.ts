import { describe, expect, test } from 'vitest'
import { evaluation, type Prediction, predict, readExample } from '../../../src/apps/decider/evaluate.ts'
import { loadDecider } from '../../../src/apps/decider/load.ts'
import { cpuDevice } from '../../../src/device/cpu.ts'
import { openDevice } from '../../../src/device/open.ts'
import { readJson, readText } from './nano.ts'

const full = process.env.PRONOUNCE_FULL === '1'
const FOLDER = 'tests/fixtures/decider-nano'
const all = readText(`${FOLDER}/heldout.jsonl`)
  .trim()
  .split('\n')
  .map((line, i) => readExample(line, `line ${i + 1}`)!)
/** PyTorch's metrics of all rows; those of the first 200 are of the CPU in f32, which agrees with it on all. */
const { reference } = readJson(`${FOLDER}/${full ? 'heldout_reference' : 'heldout_200'}.json`)
const examples = all.slice(0, reference.n)

describe.each([
  ['cpu', async () => cpuDevice('test')],
  ['webgpu, f32', () => openDevice('webgpu', { precision: 'f32' })],
] as const)('held-out rows on %s', (_, open) => {
  const accurate = 'accuracy and calibration are those of the reference'
  const run = async () => {
    const device = await open()
    const decider = await loadDecider('public/models/decider-nano', { device })
    const predictions: Prediction[] = []
    for (let at = 0; at < examples.length; at += 32)
      predictions.push(...(await predict(decider, examples.slice(at, at + 32))))
    const { rows } = evaluation(predictions, decider.config.temperatures).agg
    await decider.dispose()
    await device.dispose()
    expect(rows.n).toBe(reference.n)
    for (const key of ['acc', 'ece', 'nll', 'brier', 'chance'] as const)
      expect(Math.abs(rows[key] - reference[key]), `${key}: ${rows[key]}`).toBeLessThanOrEqual(0.002)
  }
  test(accurate, run, 3_600_000)
})
