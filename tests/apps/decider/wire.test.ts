import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { LIMITS, overloaded } from '../../../src/apps/decider/limits.ts'
import { decodeBody } from '../../../src/apps/decider/refusal.ts'
import type { Wire } from '../../../src/apps/decider/wire.ts'
import { RequestError } from '../../../src/errors.ts'
import { fakeDecider, logitsFor, rowProbabilities, tokenizer, uncalibrated } from './nano.ts'

const serve = (p = rowProbabilities, config: Parameters<typeof fakeDecider>[1] = {}) =>
  fakeDecider((_, slot, row) => logitsFor(p[row + slot]!), {
    ...config,
    config: { temperatures: uncalibrated, ...config.config },
  })
type Endpoint = keyof Wire
const answer = async (
  { decider }: Pick<ReturnType<typeof serve>, 'decider'>,
  body: string,
  endpoint: Endpoint = 'systemOne',
) => {
  const call = await decider.wire()[endpoint](body)
  return call.answer(await decider.score(call.rows))
}
const refusal = async (body: string, endpoint: Endpoint = 'systemOne', limits?: Parameters<typeof plain.wire>[0]) => {
  try {
    await plain.wire(limits)[endpoint](body)
  } catch (error) {
    expect(error).toBeInstanceOf(RequestError)
    const { status, body } = error as RequestError
    return { status, body }
  }
  throw new Error(`accepted ${body}`)
}
const { decider: plain } = serve()
const detail = (text: string) => JSON.stringify({ detail: text })

describe('POST /v1/systemone', () => {
  test('the answer as the original spells it: keys in order, floats with a point', async () => {
    const body = {
      state: 'My card was charged twice.',
      questions: {
        team: { question: 'Which team?', options: { billing: 'money', tech: null } },
        mood: { type: 'score', instructions: 'How angry?', criteria: ['calm', 'somewhat', 'angry'] },
        refund: { type: 'noul', instructions: 'Refund?' },
      },
    }
    const served = serve()
    const { rows } = await served.decider.wire().systemOne(JSON.stringify(body))
    const ids = rows.map((row) => row.ids)
    const shared = ids[0]!.findIndex((id, at) => ids.some((row) => row[at] !== id))
    const inputTokens = ids.reduce((sum, row) => sum + row.length - shared, shared)
    expect(await answer(served, JSON.stringify(body))).toBe(
      '{"model":"decider-nano-1","answers":{' +
        '"team":{"type":"choice","choice":"tech","confidence":0.6,"x_p_max":0.8,"certainty":0.2781,"probabilities":{"billing":0.2,"tech":0.8}},' +
        '"mood":{"type":"score","score":1.3,"confidence":0.25,"x_p_max":0.5,"certainty":0.1413,"legend":{"0":"calm","1":"somewhat","2":"angry"},' +
        '"probabilities":{"0":0.1,"1":0.5,"2":0.4},"level_fit":{"0":0.1,"1":0.5,"2":0.4},"fit_mass":1.0},' +
        '"refund":{"type":"noul","noul":0.95}},' +
        `"usage":{"input_tokens":${inputTokens},"output_tokens":0}}`,
    )
    expect(rows.map(({ slots }) => slots.length)).toEqual([1, 1, 1, 1, 1])
  })

  test('its rows are those of decide, packed ones too', async () => {
    const served = serve()
    const questions = {
      team: { type: 'choice', instructions: 'Which?', criteria: { a: 'x', b: null } },
      mood: { type: 'score', instructions: 'How?', criteria: ['low', 'high'] },
    } as const
    const state = { rows: Array.from({ length: 9 }, (_, i) => ({ i })) }
    for (const independent of [true, false]) {
      await served.decider.decide(state, questions, { independent })
      const { rows } = await served.decider.wire().systemOne(JSON.stringify({ state, questions, independent }))
      expect(rows).toEqual(served.calls.at(-1)!.rows)
      expect(rows).toHaveLength(independent ? 3 : 1)
    }
  })

  test('no questions: 200, no rows, no tokens', async () => {
    const served = serve()
    const body = '{"state": [1], "questions": {}, "model": null, "independent": true, "extra": 1}'
    expect(await answer(served, body)).toBe(
      '{"model":"decider-nano-1","answers":{},"usage":{"input_tokens":0,"output_tokens":0}}',
    )
    expect(served.calls).toHaveLength(0)
  })
  test('names and options like integers keep their order, and numbers in the state their spelling', async () => {
    const served = serve([[0.25, 0.75]])
    const body =
      '{"state": {"10": 1.0, "9": 1e5}, "questions": {"20": {"question": "Q", "options": {"10": null, "9": "nine"}}, ' +
      '"3": {"question": "R", "options": ["b", 1.0]}}, "independent": false}'
    const call = await served.decider.wire().systemOne(body)
    expect(tokenizer.decode(call.rows[0]!.ids)).toBe(
      'Context:\n{"10": 1.0, "9": 100000.0}\n\nQuestion 1: Q\nOptions:\n(A) 10\n(B) 9: nine\nAnswer 1: (' +
        '\n\nQuestion 2: R\nOptions:\n(A) b\n(B) 1.0\nAnswer 2: (',
    )
    const logits = [
      [0.25, 0.75],
      [1, 0],
    ].map((p) => Float32Array.from(logitsFor(p).map((x) => Math.max(x, -1000))))
    expect(call.answer([logits])).toContain(
      '"answers":{"20":{"type":"choice","choice":"9","confidence":0.5,"x_p_max":0.75,"certainty":0.1887,' +
        '"probabilities":{"10":0.25,"9":0.75}},"3":{"type":"choice","choice":"b","confidence":1.0,"x_p_max":1.0,' +
        '"certainty":1.0,"probabilities":{"b":1.0,"1.0":0.0}}}',
    )
  })
  test('"none of the above" is not neutralised here, as in the original', async () => {
    const { decider } = serve([[0.5, 0.5]], { config: { neutralizeNone: true } })
    const call = await decider
      .wire()
      .systemOne('{"state": "x", "questions": {"q": {"question": "Q", "options": ["a", "none"]}}}')
    expect(tokenizer.decode(call.rows[0]!.ids)).toContain('(B) none\n')
  })

  const q = (spec: object) => JSON.stringify({ state: 'x', questions: { team: spec } })
  test.each([
    [q({ options: ['a', 'b'] }), 'question without instructions'],
    [q({ question: 'Q', options: ['a'] }), 'choice criteria: a map of 2..255 options'],
    [
      q({ type: 'score', question: 'Q', criteria: Array(20).fill('x') }),
      'score criteria: an ordered list of 2..10 level descriptions',
    ],
    [q({ type: 'noul', question: 'Q', criteria: false }), 'noul criteria: a map of optional true/false descriptions'],
    [q({ type: 'noul' }), 'noul question without instructions: criteria must describe true or false'],
    [q({ type: 'nope', question: 'Q' }), "unknown question type 'nope'"],
  ])('%s is 422', (body, text) => expect(refusal(body)).resolves.toEqual({ status: 422, body: detail(text) }))
  test('more options than the model has is 422 too', async () => {
    const many = Array.from({ length: 33 }, (_, i) => `o${i}`)
    const { status, body } = await refusal(q({ question: 'Q', options: many }))
    expect(status).toBe(422)
    expect(JSON.parse(body).detail).toContain('has 33 options, expected 2 to 32')
  })

  // recorded from FastAPI 0.142 over Pydantic 2.13
  const whole = 'Input should be a valid dictionary or object to extract fields from'
  test.each([
    ['', '[{"type":"missing","loc":["body"],"msg":"Field required","input":null}]'],
    ['null', '[{"type":"missing","loc":["body"],"msg":"Field required","input":null}]'],
    ['[1]', `[{"type":"model_attributes_type","loc":["body"],"msg":"${whole}","input":[1]}]`],
    ['"x"', `[{"type":"model_attributes_type","loc":["body"],"msg":"${whole}","input":"x"}]`],
    [
      '{}',
      '[{"type":"missing","loc":["body","state"],"msg":"Field required","input":{}},{"type":"missing","loc":["body","questions"],"msg":"Field required","input":{}}]',
    ],
    [
      '{"state":1,"questions":{"a":5,"b":{},"c":[1.0]}}',
      '[{"type":"dict_type","loc":["body","questions","a"],"msg":"Input should be a valid dictionary","input":5},{"type":"dict_type","loc":["body","questions","c"],"msg":"Input should be a valid dictionary","input":[1.0]}]',
    ],
    [
      '{"state":1,"questions":null,"layout":1}',
      `[{"type":"dict_type","loc":["body","questions"],"msg":"Input should be a valid dictionary","input":null},{"type":"literal_error","loc":["body","layout"],"msg":"Input should be 'state_first'","input":1,"ctx":{"expected":"'state_first'"}}]`,
    ],
    [
      '{"state":1,"questions":{},"model":5}',
      '[{"type":"string_type","loc":["body","model"],"msg":"Input should be a valid string","input":5}]',
    ],
    ...(
      [
        ['"x"', 'bool_parsing', ', unable to interpret input'],
        ['2', 'bool_parsing', ', unable to interpret input'],
        ['0.5', 'bool_type', ''],
        ['null', 'bool_type', ''],
        ['123456789012345678901234567890', 'bool_type', ''],
      ] as const
    ).map(([given, type, more]) => [
      `{"state":1,"questions":{},"independent":${given}}`,
      `[{"type":"${type}","loc":["body","independent"],"msg":"Input should be a valid boolean${more}","input":${given}}]`,
    ]),
    [
      '{"state":1,',
      '[{"type":"json_invalid","loc":["body",11],"msg":"JSON decode error","input":{},"ctx":{"error":"Expecting property name enclosed in double quotes"}}]',
    ],
    ['[NaN]', `[{"type":"model_attributes_type","loc":["body"],"msg":"${whole}","input":[null]}]`],
  ])('%s is 422 with the list of FastAPI', (body, list) =>
    expect(refusal(body!)).resolves.toEqual({ status: 422, body: `{"detail":${list}}` }),
  )
  test.each(['"Yes"', '"ON"', '1', '1.0', 'true'])('independent may be %s', async (given) => {
    const two = '{"a": {"type": "noul", "question": "A"}, "b": {"type": "noul", "question": "B"}}'
    const rows = async (independent: string) =>
      (await plain.wire().systemOne(`{"state": 1, "questions": ${two}, "independent": ${independent}}`)).rows.length
    expect([await rows(given), await rows('"f"'), await rows('0.0')]).toEqual([2, 1, 1])
  })
  test('what cannot be read at all is 400', async () => {
    const unreadable = { status: 400, body: detail('There was an error parsing the body') }
    expect(await refusal('['.repeat(2000))).toEqual(unreadable)
    expect(await refusal(`{"state": ${'9'.repeat(5000)}, "questions": {}}`)).toEqual(unreadable)
    expect(() => decodeBody(Uint8Array.of(0xff))).toThrow(expect.objectContaining(unreadable))
    expect(decodeBody(new TextEncoder().encode('\ufeff{"é": 1}'))).toBe('{"é": 1}')
  })
})

describe('limits', async () => {
  const body = (n: number, state = 'x') =>
    JSON.stringify({
      state,
      questions: Object.fromEntries(Array.from({ length: n }, (_, i) => [`q${i}`, { type: 'noul', question: 'Q' }])),
    })
  const length = (await plain.wire().systemOne(body(1))).rows[0]!.ids.length
  test('rows, tokens of a row, tokens of a request: 413, in this order', async () => {
    expect(await refusal(body(5), 'systemOne', { maxRows: 4, maxRowTokens: 1 })).toEqual({
      status: 413,
      body: detail('too many questions: the request expands to 5 scoring rows, the limit is 4 (DECIDER_MAX_ROWS)'),
    })
    expect(await refusal(body(2), 'systemOne', { maxRowTokens: length - 1, maxRequestTokens: 1 })).toEqual({
      status: 413,
      body: detail(
        `too many tokens: one row has ${length} tokens, the limit is ${length - 1} per row (DECIDER_MAX_ROW_TOKENS)`,
      ),
    })
    expect(await refusal(body(2), 'systemOne', { maxRequestTokens: 2 * length - 1 })).toEqual({
      status: 413,
      body: detail(
        `too many tokens: the request has ${2 * length} tokens over 2 rows, the limit is ${2 * length - 1} (DECIDER_MAX_REQUEST_TOKENS)`,
      ),
    })
    const wire = plain.wire({ maxRows: 2, maxRowTokens: length, maxRequestTokens: 2 * length })
    expect((await wire.systemOne(body(2))).rows).toHaveLength(2)
  })
  test('those of the original, or the longest row of the model', async () => {
    expect(LIMITS).toMatchObject({ maxRows: 1024, maxRowTokens: 36864, maxRequestTokens: 1048576, maxQueueRows: 4096 })
    expect((await refusal(body(1025))).body).toContain('expands to 1025 scoring rows, the limit is 1024')
    const { decider } = serve(undefined, { maxTokens: length - 1 })
    await expect(decider.wire().systemOne(body(1))).rejects.toThrow(`the limit is ${length - 1} per row`)
  })
  test('a full queue is 503', () =>
    expect(overloaded(4097, LIMITS)).toMatchObject({
      status: 503,
      body: detail('server busy: 4097 rows queued, the limit is 4096 (DECIDER_MAX_QUEUE_ROWS); retry later'),
    }))
})

describe('POST /decide', () => {
  test('all fields in one row, the legend as it was given', async () => {
    const p = [[1], [0.03125, 0.96875], [0.5, 0.3, 0.2], [0.1, 0.9]]
    const served = serve(p)
    const body =
      '{"context": "x", "schema": {"One?": {"options": ["only"]}, "Yes?": {"type": "bool"}, ' +
      '"Mood?": {"type": "scale", "legend": {"10": "high", "9": 1.0, "9.5": null}}, "U?": {"type": "scale", "legend": ["a", 2]}}}'
    const call = await served.decider.wire().decide(body)
    expect(call.rows).toHaveLength(1)
    expect(tokenizer.decode(call.rows[0]!.ids)).toContain(
      'Question 3: Mood?\nOptions:\n(A) 9: 1.0\n(B) 9.5: null\n(C) 10: high',
    )
    expect(await answer(served, body, 'decide')).toBe(
      '{"One?":{"choice":"only","confidence":1.0,"type":"choice","probabilities":{"only":1.0}},' +
        '"Yes?":{"noul":0.9688,"type":"noul"},' +
        '"Mood?":{"score":9.35,"confidence":0.5,"type":"scale","legend":{"10":"high","9":1.0,"9.5":null},"probabilities":{"9":0.5,"9.5":0.3,"10":0.2}},' +
        '"U?":{"score":0.9,"confidence":0.9,"type":"scale","legend":["a",2],"probabilities":{"0":0.1,"1":0.9}}}',
    )
  })
  test('a neutralised option is mapped back', async () => {
    const served = serve([[0.1, 0.9]], { config: { neutralizeNone: true } })
    const body = '{"context": "x", "schema": {"Colour?": {"options": ["red", "None of the above"]}}}'
    expect(tokenizer.decode((await served.decider.wire().decide(body)).rows[0]!.ids)).toContain('(B) not listed here')
    expect(await answer(served, body, 'decide')).toContain('"probabilities":{"red":0.1,"None of the above":0.9}')
  })
  test('a question may be empty, here alone', async () => {
    const { rows } = await plain.wire().decide('{"context": "x", "schema": {"": {"type": "bool"}}}')
    expect(tokenizer.decode(rows[0]!.ids)).toContain('Question: \nOptions:\n(A) no')
  })
  test('an empty schema is answered with nothing', async () =>
    expect(await answer(serve(), '{"context": "x", "schema": {}}', 'decide')).toBe('{}'))
  test('the context is cut at 1536 tokens, whatever the model takes', async () => {
    const { decider } = serve(undefined, { config: { maxStateTokens: 32768 } })
    const schema = '{"Q?": {"type": "bool"}}'
    const tokens = async (n: number) => {
      const { rows } = await decider.wire().decide(`{"context": "${'word '.repeat(n)}", "schema": ${schema}}`)
      return rows[0]!.ids.length
    }
    expect(await tokens(9000)).toBe(await tokens(5000))
    expect(await tokens(5000)).toBe(
      1536 + tokenizer.encode('\n\nQuestion: Q?\nOptions:\n(A) no\n(B) yes\nAnswer: (').length,
    )
  })
  test('refusals', async () => {
    const help =
      '; schema: a map {question: field}, each field one of {"type": "choice", "options": [option strings]}, {"type": "bool"} or {"type": "scale", "legend": [descriptions] or {level number: description}}'
    const of = (schema: string) => refusal(`{"context": "x", "schema": ${schema}}`, 'decide')
    expect(await refusal('{"context": "x"}', 'decide')).toEqual({
      status: 422,
      body: detail(`schema is required${help}`),
    })
    expect(await of('1.0')).toEqual({ status: 422, body: detail(`schema is a float${help}`) })
    expect(await of('{"it\'s": 5}')).toEqual({
      status: 422,
      body: detail(`schema["it's"] is a int, not a field object${help}`),
    })
    expect((await of('{"q": {"type": "scale", "legend": [NaN]}}')).body).toContain('not finite JSON (NaN or Infinity)')
    expect((await refusal('{}', 'decide')).body).toBe(
      '{"detail":[{"type":"missing","loc":["body","context"],"msg":"Field required","input":{}}]}',
    )
  })
})

describe('questions that were asked before, by a model that is set to schema-first', () => {
  const body = (layout = '') => `{"state": "s", "questions": {"q": {"type": "noul", "question": "Q"}}${layout}}`
  const isSchemaFirst = async (wire: Wire, text: string) => (await wire.systemOne(text)).rows[0]!.prefix !== undefined
  test('come first from the second time on, and say what is kept', async () => {
    const { decider } = serve([[0.5, 0.5]], { config: { schemaFirst: true, neutralizeNone: true } })
    const wire = decider.wire()
    expect(await isSchemaFirst(wire, body())).toBe(false)
    const call = await wire.systemOne(body())
    const [row] = call.rows
    expect(call.answer(await decider.score(call.rows))).toContain(
      `"usage":{"input_tokens":${row!.ids.length},"cached_tokens":${row!.prefix},"output_tokens":0}`,
    )
    expect(await isSchemaFirst(wire, body(', "layout": "state_first"'))).toBe(false)
    expect(await isSchemaFirst(wire, body(', "independent": false'))).toBe(false) // other rows, first seen
  })
  test('at most 128 are remembered, the oldest goes', async () => {
    const wire = serve([[0.5, 0.5]], { config: { schemaFirst: true } }).decider.wire()
    const other = (i: number) => body().replace('"Q"', `"Q${i}"`)
    for (let i = 0; i < 128; i++) await isSchemaFirst(wire, other(i))
    expect(await isSchemaFirst(wire, other(0))).toBe(true)
    await isSchemaFirst(wire, other(128)) // 1 goes
    expect([await isSchemaFirst(wire, other(2)), await isSchemaFirst(wire, other(1))]).toEqual([true, false])
  })
  test('not by others', async () => {
    const wire = plain.wire()
    expect([await isSchemaFirst(wire, body()), await isSchemaFirst(wire, body())]).toEqual([false, false])
  })
})

describe('whatever comes in', () => {
  const wire = plain.wire({ maxRows: 64 })
  const endpoints = fc.constantFrom<Endpoint>('systemOne', 'decide')
  /** Answered with logits that are all the same, or refused with a body that is JSON. */
  const survives = async (endpoint: Endpoint, body: string): Promise<boolean> => {
    try {
      const call = await wire[endpoint](body)
      const logits = call.rows.map(({ slots }) => slots.map(() => new Float32Array(99)))
      JSON.parse(call.answer(logits))
      return true
    } catch (error) {
      if (!(error instanceof RequestError)) throw error
      expect([400, 413, 422]).toContain(error.status)
      expect(JSON.parse(error.body)).toHaveProperty('detail')
      return false
    }
  }

  const text = fc.oneof(
    fc.string(),
    fc.string({ unit: 'binary', maxLength: 8 }),
    fc.constantFrom('none', '10', '9', '__proto__'),
  )
  const json = fc.oneof(fc.jsonValue({ maxDepth: 3 }), fc.constantFrom(0, null, true))
  const map = (values: fc.Arbitrary<unknown>) => fc.dictionary(text, values, { maxKeys: 4 })
  const type = fc.oneof(fc.constantFrom('choice', 'score', 'noul', 'bool', 'scale'), json)
  const criteria = fc.oneof(map(json), fc.array(fc.oneof(text, json), { maxLength: 12 }), json)
  const spec = fc.record(
    {
      type,
      instructions: fc.oneof(text, json),
      question: text,
      criteria,
      options: criteria,
      legend: criteria,
      isolated: json,
    },
    { requiredKeys: [] },
  )
  const request = fc.record(
    {
      state: fc.oneof(text, json),
      context: fc.oneof(text, json),
      questions: fc.oneof(map(fc.oneof(spec, json)), json),
      schema: fc.oneof(map(fc.oneof(spec, json)), json),
      independent: fc.oneof(fc.boolean(), json),
      layout: fc.oneof(fc.constantFrom('state_first', null), json),
      model: json,
      image: fc.oneof({ weight: 8, arbitrary: fc.constant(null) }, text, json),
    },
    { requiredKeys: [] },
  )

  test('texts', async () => {
    await fc.assert(
      fc.asyncProperty(
        endpoints,
        fc.oneof(text, fc.json()),
        async (endpoint, body) => void (await survives(endpoint, body)),
      ),
      { numRuns: 500 },
    )
  })
  test('requests, of which some are answered', async () => {
    let answered = 0
    await fc.assert(
      fc.asyncProperty(endpoints, request, async (endpoint, body) => {
        if (await survives(endpoint, JSON.stringify(body))) answered++
      }),
      { numRuns: 1500 },
    )
    expect(answered).toBeGreaterThan(20)
  })
  test('requests with a hole, a cut or a NaN in them', async () => {
    const cuts = fc.tuple(
      request,
      fc.nat(),
      fc.nat(4),
      fc.constantFrom('', 'NaN', '\\', '"', '\u0000', '\ud800', '1e999'),
    )
    await fc.assert(
      fc.asyncProperty(endpoints, cuts, async (endpoint, [body, at, cut, put]) => {
        const whole = JSON.stringify(body)
        const place = at % (whole.length + 1)
        await survives(endpoint, whole.slice(0, place) + put + whole.slice(place + cut))
      }),
      { numRuns: 1500 },
    )
  })
})
