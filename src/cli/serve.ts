import { type Command, Option } from 'commander'
import { type Decider, loadTts, type Tts } from '../index.ts'
import type { Speaker } from '../server.ts'
import { addModelOptions, collect, type Host, inside, integer, type ModelFlags, positive, withDecider } from './host.ts'
import { addImageFlags, type ImageFlags } from './images.ts'
import { openModel } from './model.ts'
import { CODEC } from './say.ts'

interface ServeFlags extends ModelFlags, ImageFlags {
  readonly host: string
  readonly port: number
  readonly allowHost?: readonly string[]
  readonly allowOrigin?: readonly string[]
  readonly apiKey?: string
  readonly speech: boolean | string
  readonly codec?: string
  readonly batchTokens: number
  readonly maxQueueRows?: number
  readonly maxBody?: number
  readonly timeout: number
}

const ANYWHERE = ['0.0.0.0', '::']

/** `pronounce serve`: answers over HTTP until it is told to stop; then it answers what is under way, and ends. */
async function serve(flags: ServeFlags, host: Host): Promise<void> {
  // Other commands start sooner without them.
  const [{ createServer }, { listen }] = await Promise.all([import('../server.ts'), import('../server/listen.ts')])
  await withDecider(flags, host, async (decider) => {
    const voice = speakers(flags, host, decider)
    const named = ANYWHERE.includes(flags.host) ? [] : [flags.host.includes(':') ? `[${flags.host}]` : flags.host]
    const server = createServer({
      decider,
      model: flags.model,
      speaker: flags.speech === false ? undefined : voice.open,
      allowHosts: [...named, ...(flags.allowHost ?? [])],
      allowOrigins: flags.allowOrigin,
      apiKey: flags.apiKey,
      batchTokens: flags.batchTokens,
      maxBodyBytes: flags.maxBody === undefined ? undefined : flags.maxBody * 2 ** 20,
      maxPixels: flags.maxPixels,
      timeoutSeconds: flags.timeout,
      limits: flags.maxQueueRows === undefined ? undefined : { maxQueueRows: flags.maxQueueRows },
      onNews: host.note,
    })
    try {
      if (typeof flags.speech === 'string') await voice.open() // what was asked for is there, or it does not start
      const { url, close } = await listen(server, { ...flags, timeoutSeconds: flags.timeout })
      host.note(`listening on ${url} with ${decider.model}, described at /openapi.json`)
      await stop(host.signal)
      host.note('stopping: what is under way is answered; once more ends it at once')
      await close()
    } finally {
      await voice.dispose()
    }
  })
}

/** Resolves at SIGINT, which aborts the program's signal, and at SIGTERM. */
function stop(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
    process.once('SIGTERM', () => resolve())
  })
}

/** The voice: loaded when it is first asked for, on the decider's device, and again after that was lost. */
function speakers(flags: ServeFlags, host: Host, decider: Decider) {
  const { speech, codec } = flags
  const open = (where: string) => openModel(where, flags, undefined)
  let loading: Promise<Tts> | undefined
  const load = (): Promise<Tts> => {
    const { device } = decider
    const model = typeof speech === 'string' ? speech : undefined
    const tts = loadTts(open(model ?? inside(host, 'zonos-nano')), {
      device,
      codec: open(codec ?? (model === undefined ? inside(host, 'dac-nano') : CODEC)),
    })
    const forget = (): void => {
      if (loading === tts) loading = undefined
    }
    tts.catch(forget)
    void device.lost.then(async () => {
      forget()
      await tts.then((loaded) => loaded.dispose()).catch(() => {}) // who asked for it has been told
    })
    return tts
  }
  return {
    async open(): Promise<Speaker> {
      loading ??= load()
      const tts = await loading
      return {
        sampleRate: tts.sampleRate,
        async *say(text, { voice, speakingRate, seed, language, signal }) {
          const settings = { voice, speakingRate, language, sampling: { seed }, signal }
          for await (const { samples } of tts.say(text, settings)) yield samples
        },
      }
    },
    dispose: async (): Promise<void> => (await loading?.catch(() => undefined))?.dispose(),
  }
}

/** Adds the command to the program. */
export function addServe(program: Command, host: Host): void {
  const command = program
    .command('serve')
    .description('answer over HTTP: the original’s /v1/systemone and /decide, and /v1/audio/speech')
    .option('--host <address>', 'where to listen', '127.0.0.1')
    .option('--port <n>', '0: any that is free', integer(0, 65535), 8000)
    .option('--allow-host <name>', 'a Host header to take besides localhost; may be repeated', collect)
    .option('--allow-origin <origin>', 'pages that may call it, such as https://example.org; may be repeated', collect)
    .addOption(new Option('--api-key <key>', 'asked for as Authorization: Bearer').env('PRONOUNCE_API_KEY'))
    .option('--speech <where>', 'a Zonos checkpoint that speaks (default: the small voice inside, when it is asked)')
    .option('--no-speech', 'without a voice')
    .option('--codec <where>', `a DAC checkpoint (default: the small one, or with --speech ${CODEC})`)
    .option('--batch-tokens <n>', 'tokens that requests put into one run together', integer(1), 8192)
    .option('--max-queue-rows <n>', 'rows that may wait; what comes on top is refused with 503', integer(1))
    .option('--max-body <MiB>', 'of a request (default: 4; 16 where the model sees)', positive)
    .option('--timeout <seconds>', 'until a request is given up', positive, 120)
  addModelOptions(addImageFlags(command)).action((flags: ServeFlags) => serve(flags, host))
}
