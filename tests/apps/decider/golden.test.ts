import { describe, expect, test } from 'vitest'
import { labelTable } from '../../../src/apps/decider/labels.ts'
import { fakeDecider, goldenLabels, goldenText, nanoConfig, tokenizer } from './nano.ts'

describe('the nano model: prompts and probabilities that PyTorch stored', () => {
  test('there are requests of every kind', () => {
    expect(goldenText).toHaveLength(36)
    expect(goldenText.some(({ questions }) => questions.length > 1)).toBe(true)
    expect(goldenText.some(({ questions }) => questions[0]!.options.length > 10)).toBe(true)
    expect(goldenText.some(({ context }) => context === '')).toBe(true)
  })

  test.each(goldenText)('$name', async ({ context, questions, ids, slots, logits, probs }) => {
    const { decider, calls } = fakeDecider((_, slot) => [
      ...logits[slot]!,
      ...Array(99 - logits[slot]!.length).fill(20),
    ])
    const { answers, usage, model } = await decider.decidePacked(context, questions)
    expect(calls).toHaveLength(1)
    expect(calls[0]!.rows).toEqual([{ ids, slots }])
    expect(answers).toHaveLength(probs.length)
    answers.forEach(({ choice, confidence, probs: byOption, probsList }, q) => {
      const { options } = questions[q]!
      expect(probsList).toHaveLength(options.length)
      for (const [i, p] of probsList.entries()) expect(Math.abs(p - probs[q]![i]!)).toBeLessThanOrEqual(1e-6)
      expect(confidence).toBe(Math.max(...probsList))
      expect(choice).toBe(options[probsList.indexOf(confidence)])
      expect(byOption).toEqual(Object.fromEntries(options.map((option, i) => [option, probsList[i]])))
    })
    expect(usage).toMatchObject({ inputTokens: ids.length, outputTokens: 0 })
    expect(model).toBe('decider-nano-1')
  })

  test('a state over the limit is cut to its first tokens, and the answer says by how many', async () => {
    const truncated = goldenText.find(({ name }) => name === 'truncated')!
    const { decider } = fakeDecider(() => truncated.logits[0]!)
    const { usage } = await decider.decidePacked(truncated.context, truncated.questions)
    const whole = tokenizer.encode(`Context:\n${truncated.context}`).length
    expect(whole).toBeGreaterThan(nanoConfig.maxStateTokens)
    expect(usage.truncatedTokens).toBe(whole - nanoConfig.maxStateTokens)
  })

  test('the label table begins with the labels that PyTorch read, and has 99', () => {
    const labels = labelTable(tokenizer)
    expect(goldenLabels).toHaveLength(52)
    expect(labels.slice(0, 52)).toEqual(goldenLabels)
    expect(labels).toHaveLength(99)
    expect(labels.slice(-1)).toEqual(tokenizer.encode('UT'))
  })
})
