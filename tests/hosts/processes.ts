import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export const root = join(import.meta.dirname, '../..')

/** Builds dist once in a run of the tests: by the file that comes first, while others wait. */
export async function build(): Promise<void> {
  const lock = join(process.env.PRONOUNCE_RUN!, 'build')
  const done = join(lock, 'done')
  try {
    mkdirSync(lock)
  } catch {
    while (!existsSync(done)) await new Promise((resolve) => setTimeout(resolve, 100))
    return
  }
  execFileSync('npm', ['run', 'build'], { cwd: root, stdio: 'pipe' })
  writeFileSync(done, '')
}

export interface Finished {
  readonly code: number | null // null: a signal ended it
  readonly stdout: string
  readonly stderr: string
  /** From the last byte of stdout to the exit. */
  readonly lingeredMs: number
}

export interface Started {
  readonly child: ReturnType<typeof spawn>
  readonly finished: Promise<Finished>
}

/** Starts a program in the root of the repository; `env` is what its environment has besides. */
export function start(command: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): Started {
  const options = { cwd: root, stdio: 'pipe', timeout: 100_000 } as const // ended by then, or killed
  const child = spawn(command, args, { ...options, env: { ...process.env, ...env } })
  const finished = async (): Promise<Finished> => {
    let stdout = ''
    let stderr = ''
    let last = performance.now()
    child.stdout!.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
      last = performance.now()
    })
    child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      stderr += text
    })
    let exited = 0
    child.once('exit', () => {
      exited = performance.now()
    })
    const [code] = await once(child, 'close')
    return { code, stdout, stderr, lingeredMs: exited - last }
  }
  return { child, finished: finished() }
}

/** Runs a program to its end; `input` is its stdin. */
export function run(command: string, args: readonly string[], input = ''): Promise<Finished> {
  const { child, finished } = start(command, args)
  child.stdin!.on('error', () => {}) // it may have ended without reading
  child.stdin!.end(input)
  return finished
}

export const runNode = (args: readonly string[], input?: string): Promise<Finished> =>
  run(process.execPath, args, input)

/** Deno from npm: a second runtime, with a second WebGPU. */
export const runDeno = (script: string, ...args: string[]): Promise<Finished> =>
  run(join(root, 'node_modules/.bin/deno'), [
    'run',
    '--quiet',
    '--allow-read',
    '--allow-net=127.0.0.1',
    join('tests/hosts', script),
    ...args,
  ])
