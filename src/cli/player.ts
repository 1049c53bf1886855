import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { access, constants, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { InputError } from '../index.ts'
import { openOutput, pipeOutput, type SoundOut } from './sound_out.ts'

interface Player {
  readonly name: string
  readonly args: (rate: number) => readonly string[]
  /** It takes samples without a header. */
  readonly raw?: true
  /** It plays files alone, so it begins when all has been made. */
  readonly file?: true
  /** What it says where it cannot play, and ends with 0 all the same. */
  readonly failure?: RegExp
}

const ffplay = ['-nodisp', '-autoexit', '-loglevel', 'error', '-i', 'pipe:0']

const players: readonly Player[] = [
  { name: 'ffplay', args: () => ffplay, failure: /audio open failed|Failed to open/ },
  { name: 'aplay', args: () => ['-q', '-'] },
  { name: 'paplay', args: (rate) => ['--raw', `--rate=${rate}`, '--format=s16le', '--channels=1'], raw: true },
  { name: 'play', args: () => ['-q', '-t', 'wav', '-'] }, // of sox
  { name: 'afplay', args: () => [], file: true }, // of macOS
]

/** The first player that is installed. InputError names those that were looked for. */
export async function findPlayer(): Promise<Player & { readonly path: string }> {
  const folders = (process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== '')
  const end = process.platform === 'win32' ? '.exe' : ''
  for (const player of players)
    for (const folder of folders) {
      const path = join(folder, player.name + end)
      if (
        await access(path, constants.X_OK).then(
          () => true,
          () => false,
        )
      )
        return { ...player, path }
    }
  const names = players.map(({ name }) => name).join(', ')
  throw new InputError(
    `--play: found no player, expected one of ${names} in PATH; install one, or write a file with -o`,
  )
}

/** Plays samples as they come. The player's end is awaited; a stop ends it at once. */
export async function playerOutput(player: Awaited<ReturnType<typeof findPlayer>>, rate: number): Promise<SoundOut> {
  const options = { rate, format: 's16', raw: player.raw } as const
  if (player.file) return playAtEnd(player, options)
  const running = start(player, player.args(rate))
  const pipe = pipeOutput(running.stdin, options)
  return {
    // A pipe that broke knows less of it than the player said.
    write: (samples) => Promise.race([pipe.write(samples).catch(() => running.failed), running.failed]),
    async end() {
      running.stdin.end()
      await running.ended
    },
    stop: running.stop,
  }
}

async function playAtEnd(player: Player & { readonly path: string }, options: Parameters<typeof openOutput>[2]) {
  const folder = await mkdtemp(join(tmpdir(), 'pronounce-'))
  const path = join(folder, 'speech.wav')
  const file = await openOutput(path, true, options)
  const remove = () => rm(folder, { recursive: true, force: true })
  let stop = async (): Promise<void> => {}
  return {
    write: file.write,
    async end() {
      await file.end()
      const running = start(player, [path])
      stop = running.stop
      await running.ended.finally(remove)
    },
    async stop() {
      await stop()
      await file.stop()
      await remove()
    },
  }
}

function start({ name, path, failure }: Player & { readonly path: string }, args: readonly string[]) {
  const child = spawn(path, args, { stdio: ['pipe', 'ignore', 'pipe'] })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-1000)
  })
  child.stdin.on('error', () => {}) // it has ended, which is told below
  const ended = once(child, 'close').then(([code]) => {
    const lines = said.trim().split('\n')
    const failed = lines.find((line) => failure?.test(line))
    if (code === 0 && failed === undefined) return
    const why = failed ?? (lines.at(-1) || `code ${code}`)
    throw new InputError(`--play: ${name} ended early (${why}); check the sound device, or write a file with -o`)
  })
  ended.catch(() => {})
  const failed = ended.then(() => {
    throw new InputError(`--play: ${name} ended before the speech did; write a file with -o`)
  })
  failed.catch(() => {})
  const stop = async (): Promise<void> => {
    child.kill('SIGKILL')
    await ended.catch(() => {})
  }
  return { stdin: child.stdin, ended, failed, stop }
}
