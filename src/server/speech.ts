import { z } from '@hono/zod-openapi'
import { DeviceError, InputError, RequestError } from '../errors.ts'
import { wavHeader, wavSamples } from '../media/wav.ts'
import { untilAborted } from '../device/abort.ts'
import { failureOf } from './failure.ts'
import { type Deadline, deadline, readBody } from './request.ts'

/** What a server needs of a voice. */
export interface Speaker {
  readonly sampleRate: number
  /** Mono samples in [-1, 1] as they are made; leaving the loop ends the work. */
  say(text: string, options: SayRequest): AsyncIterable<Float32Array>
}

export interface SayRequest {
  /** Seed of the voice. */
  readonly voice: number
  /** Phonemes a second. */
  readonly speakingRate: number
  readonly seed: number
  readonly language: string
  readonly signal: AbortSignal
}

const RATE = 15 // phonemes a second at speed 1, Zonos' default
const FASTEST = 40 // phonemes a second that Zonos has learnt
const MOST_CHARACTERS = 4096 // OpenAI's limit
const MOST_SEED = 2 ** 31 - 1
const seed = z.int().min(0).max(MOST_SEED)

/** The request of OpenAI's `POST /v1/audio/speech`, as far as it can be served, and two fields more. */
export const SpeechRequest = z
  .object({
    model: z.string().optional().openapi({ description: 'There is one voice model; any name is taken.' }),
    input: z.string().min(1).max(MOST_CHARACTERS),
    voice: z
      .union([z.string().min(1), seed])
      .default('0')
      .openapi({ description: 'A number is the seed of a made-up voice; another name stands for a seed of its own.' }),
    response_format: z.enum(['wav', 'pcm']).default('wav').openapi({
      description: 'wav: 16 bits, mono. pcm: the samples alone, little-endian, at the rate in the content type.',
    }),
    speed: z.number().min(0.25).max(4).default(1).openapi({ description: 'Beyond 2.7 it gets no faster.' }),
    stream_format: z.enum(['audio', 'sse']).default('audio'),
    seed: seed.default(0).openapi({ description: 'The same seed, the same speech.' }),
    language: z.string().default('en-us').openapi({ description: "One of espeak-ng's." }),
  })
  .openapi('SpeechRequest')
type SpeechRequest = z.infer<typeof SpeechRequest>

/** Reads a request body. Throws RequestError 400 with OpenAI's error body. */
function readSpeechRequest(body: string): SpeechRequest {
  let json: unknown
  try {
    json = JSON.parse(body)
  } catch (cause) {
    throw speechError(400, 'the body is not JSON', null, cause)
  }
  const { data, error } = SpeechRequest.safeParse(json)
  if (data) return data
  const [issue] = error.issues
  const param = issue!.path.join('.')
  throw speechError(400, param === '' ? issue!.message : `${param}: ${issue!.message}`, param || null, error)
}

export interface SpeechRouteOptions {
  /** Opens the voice, or has it open. */
  readonly open: () => Promise<Speaker>
  /** Speeches under way and waiting. */
  readonly maxSpeeches: number
  readonly timeoutSeconds: number
  readonly maxBodyBytes: number
  /** Hears of work that goes on behind a response. */
  readonly track: (work: Promise<void>) => void
}

/**
 * Answers as soon as the first samples are there and sends them as fast as they are made, so that a client which reads
 * slowly does not hold the voice. A client that goes away ends the work.
 */
export function speechRoute(options: SpeechRouteOptions): (request: Request) => Promise<Response> {
  const { open, maxSpeeches, timeoutSeconds, maxBodyBytes, track } = options
  let speeches = 0

  async function respond(wanted: SpeechRequest, until: Deadline, end: () => void): Promise<Response> {
    const { signal, leave, extend } = until
    const speaker = await untilAborted(open(), signal)
    const { input, voice, speed, seed, language } = wanted
    const settings = { voice: voiceSeed(voice), speakingRate: Math.min(RATE * speed, FASTEST), seed, language, signal }
    const parts = told(speaker.say(input, settings), extend)
    const first = await parts.next()
    const { type, encode } = codingOf(wanted, speaker.sampleRate)
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => track(pump(first, parts, encode, controller).finally(end)),
      cancel: leave,
    })
    return new Response(body, { headers: { 'content-type': type } })
  }

  return async (request) => {
    const until = deadline(request.signal, timeoutSeconds)
    try {
      const wanted = readSpeechRequest(await readBody(request, maxBodyBytes, until.signal))
      if (speeches >= maxSpeeches) throw busy(speeches)
      speeches++
      const end = (): void => {
        speeches--
        until.end()
      }
      return await respond(wanted, until, end).catch((error) => {
        speeches--
        throw error
      })
    } catch (error) {
      until.end()
      throw speechFailure(error)
    }
  }
}

/** Tells of every part before it is passed on. */
async function* told<A>(parts: AsyncIterable<A>, tell: () => void): AsyncGenerator<A> {
  for await (const part of parts) {
    tell()
    yield part
  }
}

type Part = IteratorResult<Float32Array>
interface Coding {
  readonly type: string
  readonly encode: { begin(): Uint8Array; part(samples: Float32Array): Uint8Array; end(): Uint8Array }
}

async function pump(
  first: Part,
  parts: AsyncGenerator<Float32Array>,
  { begin, part, end }: Coding['encode'],
  controller: ReadableStreamDefaultController<Uint8Array>,
): Promise<void> {
  const send = (bytes: Uint8Array): void => {
    if (bytes.length > 0) controller.enqueue(bytes)
  }
  try {
    send(begin())
    for (let next = first; !next.done; next = await parts.next()) send(part(next.value))
    send(end())
    controller.close()
  } catch (error) {
    await parts.return(undefined)
    controller.error(error) // the connection breaks off, which is how the client learns of it
  }
}

const NOTHING = new Uint8Array()

function codingOf({ response_format, stream_format }: SpeechRequest, rate: number): Coding {
  const begin = (): Uint8Array => (response_format === 'wav' ? wavHeader(rate) : NOTHING)
  const part = (samples: Float32Array): Uint8Array => wavSamples(samples)
  if (stream_format === 'audio') {
    const type = response_format === 'wav' ? 'audio/wav' : `audio/pcm;rate=${rate};channels=1`
    return { type, encode: { begin, part, end: () => NOTHING } }
  }
  const event = (data: object): Uint8Array => new TextEncoder().encode(`data: ${JSON.stringify(data)}\n\n`)
  const delta = (bytes: Uint8Array): Uint8Array =>
    bytes.length === 0 ? bytes : event({ type: 'speech.audio.delta', audio: base64(bytes) })
  return {
    type: 'text/event-stream',
    encode: {
      begin: () => delta(begin()),
      part: (samples) => delta(part(samples)),
      end: () => event({ type: 'speech.audio.done' }),
    },
  }
}

const base64 = (bytes: Uint8Array): string => {
  let text = ''
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000))
  return btoa(text)
}

/** The seed that a voice's name stands for: a number is itself, any other name its FNV-1a hash. */
export function voiceSeed(voice: string | number): number {
  if (/^\d+$/.test(String(voice)) && Number(voice) <= MOST_SEED) return Number(voice)
  let hash = 0x811c9dc5
  for (const byte of new TextEncoder().encode(String(voice))) hash = Math.imul(hash ^ byte, 0x01000193)
  return hash & MOST_SEED
}

/** OpenAI's error body. */
function speechError(status: number, message: string, param: string | null, cause?: unknown): RequestError {
  const type = status < 500 ? 'invalid_request_error' : 'server_error'
  const body = JSON.stringify({ error: { message, type, param, code: null } })
  return new RequestError(status, body, `speech: ${message}`, { cause })
}

/** What a speech that failed is answered with. */
function speechFailure(error: unknown): RequestError {
  if (error instanceof RequestError) return error
  if (error instanceof InputError) return speechError(400, error.message, 'input', error)
  if (error instanceof DeviceError) return speechError(503, `${error.message}; retry later`, null, error)
  return failureOf(error)
}

const busy = (speeches: number): RequestError =>
  speechError(503, `server busy: ${speeches} speeches are under way or wait, which is the limit; retry later`, null)
