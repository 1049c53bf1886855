import { describe, expect, test } from 'vitest'
import { curl, typescript } from '../../demo/decide/code.ts'
import { examples } from '../../demo/decide/examples.ts'
import { fromJson, splitOptions, toJson } from '../../demo/decide/questions.ts'
import { sentences } from '../../demo/decide/sentence.ts'
import { fromLink, toLink } from '../../demo/decide/share.ts'
import { readQuestions } from '../../src/index.ts'

describe('questions', () => {
  test.each(examples)('$title goes through the form unchanged, and can be asked', ({ questions }) => {
    expect(toJson(fromJson(questions)!)).toEqual(questions)
    expect(Object.keys(readQuestions(questions))).toEqual(Object.keys(questions))
  })
  test('options may be described, and may hold commas on lines of their own', () => {
    expect(splitOptions(' a, b,,c ')).toEqual(['a', 'b', 'c'])
    expect(splitOptions('a, then b\nc')).toEqual(['a, then b', 'c'])
    const described = { q: { type: 'choice', instructions: 'Which?', criteria: { a: 'money, or more', b: '' } } }
    const [draft] = fromJson(described)!
    expect(draft!.options).toBe('a: money, or more\nb')
    expect(toJson([draft!])).toEqual(described)
  })
  test('other names of the same, and what the form cannot show', () => {
    expect(toJson(fromJson({ q: { question: 'Which?', options: ['a', 'b'] } })!)).toEqual({
      q: { type: 'choice', instructions: 'Which?', criteria: ['a', 'b'] },
    })
    expect(fromJson({ q: { type: 'bool', question: 'Is it?' } })![0]!.type).toBe('noul')
    for (const other of [
      [],
      { q: 1 },
      { q: { instructions: { a: 1 } } },
      { q: { type: 'other', instructions: 'x' } },
      { q: { type: 'noul', instructions: 'x', criteria: { true: 'y' } } },
      { q: { instructions: 'x', criteria: [1, 2] } },
    ])
      expect(fromJson(other), JSON.stringify(other)).toBeUndefined()
  })
})

describe('links', () => {
  const shared = { text: 'Größe & "quotes" 東京', questions: examples[0]!.questions }
  test('hold a request', async () => {
    const link = await toLink(shared)
    expect(link).toMatch(/^#decide=[\w-]+$/)
    expect(await fromLink(link)).toEqual(shared)
  })
  test('that hold none, or were cut', async () => {
    expect(await fromLink('#decide')).toBeUndefined()
    await expect(fromLink((await toLink(shared)).slice(0, 40))).rejects.toThrow()
  })
})

test('code that asks the same', () => {
  const shared = { text: "It's broken", questions: { q: { type: 'noul', instructions: 'Is it?' } } }
  const body = /-d '(.*)'\n$/s.exec(curl(shared))![1]!.replaceAll(String.raw`'\''`, "'")
  expect(JSON.parse(body)).toEqual({ state: shared.text, questions: shared.questions })
  const code = (where: string | Record<string, Blob>) => typescript(shared, { kind: 'decider', title: 'mine', where })
  expect(code('hf:me/it')).toContain('loadDecider("hf:me/it", { device })')
  expect(code('http://page/models/decider-nano/')).toContain('pronounce/models/decider-nano')
  expect(code({})).toContain('mine, from files')
})

test('answers in words', () => {
  const questions = { team: { instructions: 'Which team?' }, ok: {} }
  const choice = {
    type: 'choice',
    choice: 'sales',
    confidence: 1,
    x_p_max: 1,
    certainty: 1,
    probabilities: { sales: 1 },
  } as const
  const usage = { inputTokens: 1, outputTokens: 0, truncatedTokens: 0 } as const
  const decision = { model: 'm', usage, answers: { team: choice, ok: { type: 'noul', noul: 0.2 } as const } }
  expect(sentences(questions, decision)).toBe('Which team? Sales. ok? No.')
})
