import { describe, expect, test } from 'vitest'
import { type JsonSchema, readJsonSchema } from '../../../src/apps/decider/json_schema.ts'
import { InputError } from '../../../src/errors.ts'
import { fakeDecider, logitsFor, tokenizer } from './nano.ts'

test('all fields in one row, each with the temperature of its type, in the shape of the original', async () => {
  const p = [
    [0.2, 0.7, 0.1],
    [0.03125, 0.96875],
    [0.5, 0.25, 0.25],
    [0.1, 0.9],
  ]
  const temperatures = { base: 7, byType: { choice: 1, noul: 2, score: 3 } }
  const scale = [1, 2, 3, 3] // undone here, so that every field reads its p
  const { decider, calls } = fakeDecider((_, slot) => logitsFor(p[slot]!).map((x) => x * scale[slot]!), {
    config: { temperatures },
  })
  const schema: JsonSchema = {
    'Which team?': { options: ['billing', 'technical', 'sales'] },
    'Refund?': { type: 'bool' },
    'Urgency?': { type: 'scale', legend: ['low', 'mid', 'high'] },
    'Mood?': { type: 'scale', legend: { '2.5': 'good', '-1': 'bad' } },
  }
  const { answers, usage } = await decider.decideJson('My card was charged twice.', schema)
  expect(JSON.stringify(answers)).toBe(
    JSON.stringify({
      'Which team?': {
        choice: 'technical',
        confidence: 0.7,
        type: 'choice',
        probabilities: { billing: 0.2, technical: 0.7, sales: 0.1 },
      },
      'Refund?': { noul: 0.9688, type: 'noul' },
      'Urgency?': {
        score: 0.75,
        confidence: 0.5,
        type: 'scale',
        legend: ['low', 'mid', 'high'],
        probabilities: { '0': 0.5, '1': 0.25, '2': 0.25 },
      },
      'Mood?': {
        score: 2.15,
        confidence: 0.9,
        type: 'scale',
        legend: { '2.5': 'good', '-1': 'bad' },
        probabilities: { '-1': 0.1, '2.5': 0.9 },
      },
    }),
  )
  expect(calls[0]!.rows).toHaveLength(1)
  const { ids, slots } = calls[0]!.rows[0]!
  expect(slots).toHaveLength(4)
  expect(usage.inputTokens).toBe(ids.length)
  expect(tokenizer.decode(ids)).toContain('Question 4: Mood?\nOptions:\n(A) -1: bad\n(B) 2.5: good\nAnswer 4: (')
})

describe('refusals in the words of the original', () => {
  const help =
    'schema: a map {question: field}, each field one of {"type": "choice", "options": [option strings]}, {"type": "bool"} or {"type": "scale", "legend": [descriptions] or {level number: description}}'
  test.each([
    [null, 'schema is required; '],
    [[], 'schema is a list; '],
    [7, 'schema is a int; '],
    [{ q: 'x' }, "schema['q'] is a str, not a field object; "],
    [{ q: null }, "schema['q'] is a NoneType, not a field object; "],
    [{ q: {} }, `schema['q']: "options" must be a non-empty list of strings; `],
    [{ q: { options: [1] } }, `schema['q']: "options" must be a non-empty list of strings; `],
    [{ q: { type: 'scale' } }, `schema['q']: "legend" must be a non-empty list or {level number: description} map; `],
    [
      { q: { type: 'scale', legend: [] } },
      `schema['q']: "legend" must be a non-empty list or {level number: description} map; `,
    ],
    [
      { q: { type: 'scale', legend: ['a', { x: [Number.NaN] }] } },
      `schema['q']: the "legend" contains a value that is not finite JSON (NaN or Infinity); `,
    ],
    [
      { q: { type: 'scale', legend: { low: 'a' } } },
      `schema['q']: the keys of a "legend" map must be finite numbers, e.g. {"0": "none", "1": "low"}; `,
    ],
    [{ q: { type: 'x' } }, "schema['q']: unknown field type 'x'; "],
  ])('%j', (schema, prefix) => {
    const read = () => readJsonSchema(schema)
    expect(read).toThrow(InputError)
    expect(read).toThrow(expect.objectContaining({ message: prefix + help }))
  })
  test('one option is too few to ask', async () => {
    const { decider } = fakeDecider(() => [])
    await expect(decider.decideJson('x', { q: { options: ['a'] } })).rejects.toThrow("schema['q']: has 1 options")
  })
})
