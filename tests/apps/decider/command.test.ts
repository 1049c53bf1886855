import { describe, expect, test } from 'vitest'
import { answerChoice, answerIsolated, answerYesNo } from '../../../src/apps/decider/answer.ts'
import { type Flag, questionsOf } from '../../../src/apps/decider/flags.ts'
import { barOf, printDecision } from '../../../src/apps/decider/print.ts'
import { choice, yesNo } from '../../../src/apps/decider/question.ts'

/** 'q text' and 'o a,b' as flags. */
const flags = (...words: string[]): Flag[] =>
  words.map((word) => ({ name: word[0] === 'q' ? 'question' : 'options', value: word.slice(2) }))

describe('questions from flags', () => {
  test('a question takes the options after it, one without is yes or no', () => {
    expect(questionsOf(flags('q A?', 'o a, b', 'q B?', 'q C?', 'o x,y,z'))).toEqual({
      'A?': choice('A?', ['a', 'b']),
      'B?': yesNo('B?'),
      'C?': choice('C?', ['x', 'y', 'z']),
    })
  })
  test('as many options as questions: by their place', () => {
    expect(questionsOf(flags('q A?', 'q B?', 'o a,b', 'o c,d'))).toEqual({
      'A?': choice('A?', ['a', 'b']),
      'B?': choice('B?', ['c', 'd']),
    })
    expect(questionsOf(flags('o a,b', 'q A?'))).toEqual({ 'A?': choice('A?', ['a', 'b']) })
  })
  test('a comma of an option is escaped', () => {
    expect(questionsOf(flags('q A?', String.raw`o a\,b,c`))).toEqual({ 'A?': choice('A?', ['a,b', 'c']) })
  })
  test.each([[['o a,b']], [['q A?', 'o a,b', 'o c,d']], [['o a,b', 'q A?', 'q B?']]])('%j is refused', (words) => {
    expect(() => questionsOf(flags(...words))).toThrow('has no question')
  })
  test('an option that is empty or there twice is refused', () => {
    expect(() => questionsOf(flags('q A?', 'o a,,b'))).toThrow("'a,,b' has an empty option")
    expect(() => questionsOf(flags('q A?', 'o a,b, a'))).toThrow("has 'a' twice")
  })
  test('the same question twice is refused', () => expect(() => questionsOf(flags('q A?', 'q A?'))).toThrow('twice'))
})

describe('printing', () => {
  const decision = {
    model: 'decider-nano-1',
    usage: { inputTokens: 1, outputTokens: 0, truncatedTokens: 0 } as const,
    answers: {
      team: answerChoice(['billing', 'tech'], [0.75, 0.25]),
      refund: answerYesNo([0.9, 0.1]),
      mood: answerIsolated(['calm', 'angry'], [0.2, 0.8]),
      unsure: answerChoice(['a', 'b'], [0.5, 0.5], 0.9),
    },
  }
  test('plain text in a pipe', () => {
    expect(printDecision(decision, { bars: false, color: false })).toBe(
      [
        'team -> billing',
        '  billing  0.7500',
        '  tech     0.2500',
        '',
        'refund -> no',
        '  no   0.9000',
        '  yes  0.1000',
        '',
        'mood -> 0.8 (0 to 1)',
        '  0: calm   0.2000',
        '  1: angry  0.8000',
        '',
        'unsure -> no answer (below the threshold)',
        '  a  0.5000',
        '  b  0.5000',
        '',
      ].join('\n'),
    )
  })
  test('bars and colours on a terminal', () => {
    const text = printDecision(decision, { bars: true, color: true })
    expect(text).toContain(`tech     0.2500  ${'█'.repeat(6)}\n`)
    expect(text).toContain('\u001b[1mteam\u001b[22m')
  })
  test('bars are as long as the probability', () => {
    expect(barOf(1)).toBe('█'.repeat(24))
    expect(barOf(0)).toBe('')
    expect(barOf(0.0001)).toBe('▏')
    expect(barOf(0.5)).toBe('█'.repeat(12))
    expect(barOf(0.02)).toBe('▌')
  })
})
