import { describe, expect, test } from 'vitest'
import { choice, score, yesNo } from '../../../src/apps/decider/question.ts'
import { goldenText, nanoDevices, nanoOn } from './nano.ts'

describe.each(nanoDevices)('the nano model on %s', (_, open, tolerance) => {
  const loaded = nanoOn(open)

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
    const { memory } = (await loaded).device
    const { answers } = await decider.decide('My card was charged twice. Please give me my money back, now!', {
      team: choice('Which department should handle this?', ['billing', 'technical', 'sales']),
      refund: yesNo('Does the customer want a refund?'),
      urgency: score('How urgent is this?', ['can wait', 'normal', 'high', 'critical']),
    })
    expect(answers.team.choice).toBe('billing')
    expect(answers.refund.noul).toBeGreaterThan(0.5)
    expect(answers.urgency.score).toBeGreaterThan(1)
    expect(memory.pipelines).toBeLessThanOrEqual(40)
    expect((await loaded).device.memory.pipelines).toBe(memory.pipelines)
  })
})
