import { afterAll, describe, expect, test } from 'vitest'
import type { Decider } from '../../../src/apps/decider/api.ts'
import { loadDecider } from '../../../src/apps/decider/load.ts'
import { cpuDevice } from '../../../src/device/cpu.ts'
import { openDevice } from '../../../src/device/open.ts'
import { choice, score, yesNo } from '../../../src/apps/decider/question.ts'
import { goldenText } from './nano.ts'

const model = 'public/models/decider-nano'

describe.each([
  ['cpu', async () => cpuDevice('test'), 1e-4],
  ['webgpu, f32', () => openDevice('webgpu', { precision: 'f32' }), 1e-4],
  ['webgpu, f16', () => openDevice('webgpu'), 2e-3],
] as const)('the nano model on %s', (_, open, tolerance) => {
  const opened = open()
  const loaded: Promise<Decider> = opened.then((device) => loadDecider(model, { device }))
  afterAll(async () => {
    await (await loaded).dispose()
    const device = await opened
    expect(device.memory.keptBytes).toBe(0)
    await device.dispose()
  })

  test.each(goldenText)('$name', async ({ context, questions, probs }) => {
    const { answers } = await (await loaded).decidePacked(context, questions)
    expect(answers).toHaveLength(probs.length)
    answers.forEach(({ probsList }, q) => {
      expect(probsList).toHaveLength(probs[q]!.length)
      const drift = probsList.map((p, i) => Math.abs(p - probs[q]![i]!))
      expect(Math.max(...drift), `question ${q}`).toBeLessThanOrEqual(tolerance)
    })
  })

  test('typed questions, and no pipeline for a length never seen', async () => {
    const decider = await loaded
    const { memory } = await opened
    const { answers } = await decider.decide('My card was charged twice. Please give me my money back, now!', {
      team: choice('Which department should handle this?', ['billing', 'technical', 'sales']),
      refund: yesNo('Does the customer want a refund?'),
      urgency: score('How urgent is this?', ['can wait', 'normal', 'high', 'critical']),
    })
    expect(answers.team.choice).toBe('billing')
    expect(answers.refund.noul).toBeGreaterThan(0.5)
    expect(answers.urgency.score).toBeGreaterThan(1)
    expect(memory.pipelines).toBeLessThanOrEqual(40)
    expect((await opened).memory.pipelines).toBe(memory.pipelines)
  })
})
