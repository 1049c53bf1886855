import { type OpenAPIHono, type RouteConfig, z } from '@hono/zod-openapi'
import { SpeechRequest } from './speech.ts'

/** What the document says; bodies are checked by the apps, whose messages are the original's. */
const anyJson = z
  .union([z.string(), z.record(z.string(), z.unknown()), z.array(z.unknown()), z.number(), z.boolean(), z.null()])
  .openapi({ description: 'Text, or any JSON, which the model reads as text.' })
const image = z.string().nullish().openapi({
  description:
    'Shown before the text, to a model that sees: a PNG, JPEG, WebP or GIF file as data:image/png;base64,...',
})
const Question = z
  .object({
    type: z.enum(['choice', 'score', 'noul', 'bool']).optional().openapi({ default: 'choice' }),
    instructions: anyJson.optional(),
    criteria: z.unknown().openapi({
      description:
        'choice: {name: description or null} or a list of 2 to 255 names. score: a list of 2 to 10 levels, or {number: ' +
        'description}. noul: {"true": ..., "false": ...} or null.',
    }),
    isolated: z.boolean().optional().openapi({ description: 'false asks all levels of a score in one row.' }),
  })
  .openapi('Question')
const SystemOneRequest = z
  .object({
    state: anyJson,
    questions: z.record(z.string(), Question),
    model: z.string().nullish().openapi({ description: 'Ignored: there is one model.' }),
    independent: z.boolean().default(true).openapi({ description: 'false asks all questions in one row.' }),
    layout: z.literal('state_first').nullish(),
    image,
  })
  .openapi('SystemOneRequest')
const probabilities = z.record(z.string(), z.number())
const SystemOneAnswer = z
  .object({
    model: z.string(),
    answers: z.record(
      z.string(),
      z.union([
        z.object({
          type: z.literal('choice'),
          choice: z.string(),
          confidence: z.number(),
          x_p_max: z.number(),
          certainty: z.number(),
          probabilities,
        }),
        z.object({ type: z.literal('noul'), noul: z.number() }),
        z.object({
          type: z.literal('score'),
          score: z.number(),
          confidence: z.number(),
          x_p_max: z.number(),
          certainty: z.number(),
          legend: z.record(z.string(), z.unknown()),
          probabilities,
          level_fit: probabilities.optional(),
          fit_mass: z.number().optional(),
        }),
      ]),
    ),
    usage: z.object({
      input_tokens: z.int(),
      cached_tokens: z.int().optional(),
      output_tokens: z.literal(0),
    }),
  })
  .openapi('SystemOneAnswer')
const Field = z.object({
  type: z.enum(['choice', 'bool', 'scale']).default('choice'),
  options: z.array(z.string()).optional(),
  legend: z.unknown().optional(),
})
const DecideRequest = z
  .object({ context: z.string(), schema: z.record(z.string(), Field), image })
  .openapi('DecideRequest', { description: 'All questions are put in one row, where each sees those before it.' })
const Refusal = z.object({ detail: z.union([z.string(), z.array(z.unknown())]) }).openapi('Refusal')
const SpeechRefusal = z
  .object({
    error: z.object({
      message: z.string(),
      type: z.string(),
      param: z.string().nullable(),
      code: z.string().nullable(),
    }),
  })
  .openapi('SpeechRefusal')

const json = (schema: z.ZodType, description: string) => ({
  description,
  content: { 'application/json': { schema } },
})
const refusals = {
  403: json(Refusal, 'The Host or Origin header is none that was allowed.'),
  413: json(Refusal, 'Too many questions, tokens, pixels or bytes.'),
  415: json(Refusal, 'The body is no application/json.'),
  422: json(Refusal, 'The request cannot be asked, and why.'),
  503: json(Refusal, 'Too much waits, it took too long, or the device is away: retry later.'),
}
const post = (path: string, summary: string, schema: z.ZodType, responses: RouteConfig['responses']): RouteConfig => ({
  method: 'post',
  path,
  summary,
  request: { body: { required: true, content: { 'application/json': { schema } } } },
  responses,
})
const get = (path: string, summary: string): RouteConfig => ({
  method: 'get',
  path,
  summary,
  responses: { 200: json(z.looseObject({}), summary) },
})
const audio = { schema: z.string().openapi({ format: 'binary' }) }

/** Describes the routes, and serves the description at /openapi.json. */
export function describe(app: OpenAPIHono, { key, speech }: { key: boolean; speech: boolean }): void {
  const { openAPIRegistry: registry } = app
  const answered = (schema: z.ZodType) => ({ 200: json(schema, 'The answers.'), ...refusals })
  registry.registerPath(
    post('/v1/systemone', 'Typed questions about a state', SystemOneRequest, answered(SystemOneAnswer)),
  )
  registry.registerPath(
    post('/decide', 'Fields about a text', DecideRequest, answered(z.record(z.string(), z.looseObject({})))),
  )
  if (speech)
    registry.registerPath(
      post('/v1/audio/speech', 'Speech, sent while it is made', SpeechRequest, {
        200: {
          description: 'Sound, or events with sound.',
          content: { 'audio/wav': audio, 'audio/pcm': audio, 'text/event-stream': audio },
        },
        400: json(SpeechRefusal, 'It cannot be said, and why.'),
        503: json(SpeechRefusal, 'Too much waits, or the device is away: retry later.'),
      }),
    )
  registry.registerPath(get('/v1/models', 'The model'))
  registry.registerPath(get('/health', 'Whether it answers, and on which device; 503 while it does not'))
  registry.registerPath(get('/stats', 'What it did so far, and its limits'))
  if (key) registry.registerComponent('securitySchemes', 'key', { type: 'http', scheme: 'bearer' })
  app.doc31('/openapi.json', {
    openapi: '3.1.0',
    info: { title: 'pronounce', version: '1' },
    ...(key && { security: [{ key: [] }] }),
  })
}
